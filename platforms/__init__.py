"""The platforms of a pipeline: this machine, Vertex AI Pipelines and Kubeflow Pipelines."""
