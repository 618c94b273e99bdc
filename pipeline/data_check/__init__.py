"""A look at the data before the first run: what a run would read, and what it lacks."""
