"""ReviewExampleGen: reads raw review files, and writes Examples and rejected lines."""
