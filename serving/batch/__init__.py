"""Score files of reviews with a pushed model: readers, model, writer. `run` shows the steps."""
