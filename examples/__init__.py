"""Examples on disk, for components and trainer: TFRecord files, counts, digests, a writer.

This package does not use TFX.
"""
