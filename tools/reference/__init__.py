"""Generators of the pages of `docs/reference/` that list what the code declares."""
