"""The baseline of a candidate: the model that `paths.serving` serves."""
