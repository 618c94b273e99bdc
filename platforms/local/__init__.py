"""Runs on this machine, under TFX's local engine."""
