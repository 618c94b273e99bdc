"""Predictions with a pushed model."""
