"""Evaluator: TFX's, whose accuracy threshold is a parameter of a run."""
