"""A training as a TFJob of Kubeflow's training operator."""
