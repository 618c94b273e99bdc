"""Trainer: TFX's Trainer, with epochs and strategy as parameters of a run."""
