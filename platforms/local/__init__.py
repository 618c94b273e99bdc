"""Runs on this machine, by TFX's local engine."""
