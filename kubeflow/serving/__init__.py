"""Serving the pushed models on a cluster."""
