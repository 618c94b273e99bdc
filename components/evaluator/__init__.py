"""Evaluator: TFX's Evaluator, with the accuracy threshold as a parameter of a run."""
