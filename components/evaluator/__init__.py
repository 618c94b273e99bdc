"""Evaluator: the metrics of TFX's Evaluator, computed in large batches."""
