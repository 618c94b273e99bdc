"""Signatures of pushed models: `settings`, the `bundle` in a file, the `model` in a folder."""
