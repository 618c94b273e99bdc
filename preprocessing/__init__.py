"""Text in, features out: finding and reading review files, and computing the model's features."""
