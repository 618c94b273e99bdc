"""The baseline of a candidate: the model that was pushed last."""
