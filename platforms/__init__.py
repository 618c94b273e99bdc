"""Where a pipeline runs: this machine, Vertex AI Pipelines or Kubeflow Pipelines."""
