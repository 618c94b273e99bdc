"""Runs on Vertex AI Pipelines."""
