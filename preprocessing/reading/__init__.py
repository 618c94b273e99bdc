"""Review files to batches of reviews: fastText, CSV, JSON lines and Parquet, plain or compressed.

`read` shows the steps in their order. Nothing is imported here: `records` and `columns` need no
library, `files` needs Beam, and `formats.parquet` needs pyarrow.
"""
