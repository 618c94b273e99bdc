"""Review files to batches of reviews: fastText, CSV, JSON lines and Parquet, plain or compressed.

`read` contains the steps in their order. Nothing is imported here: `records` and `columns` require
no library, `files` requires Beam, and `formats.parquet` requires pyarrow.
"""
