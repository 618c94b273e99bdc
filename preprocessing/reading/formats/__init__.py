"""The formats of review files, one module each: lines or a stream in, batches or records out."""
