"""A training as a JobSet, without any operator of Kubeflow."""
