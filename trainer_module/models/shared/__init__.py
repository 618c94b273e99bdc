"""Layers and optimizers that several models use."""
