"""Trainer: TFX's, with run parameters; on Kubernetes as a TFJob, on Vertex AI as a CustomJob."""
