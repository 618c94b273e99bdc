"""Text in, features out: finding and reading review files, and what the model is fed."""
