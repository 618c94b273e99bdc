"""Runs on Kubeflow Pipelines."""
