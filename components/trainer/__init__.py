"""Trainer: TFX's, whose epochs and strategy are parameters of a run, and its TFJob on Kubernetes."""
