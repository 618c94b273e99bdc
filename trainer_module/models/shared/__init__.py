"""Layers and optimizers of several models."""
