"""ReviewExampleGen: raw review files in, Examples and rejected lines out."""
