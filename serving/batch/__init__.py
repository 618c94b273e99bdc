"""Predictions for files of reviews, with a pushed model. The module `run` lists the steps."""
