"""A training as a TrainJob of Kubeflow Trainer v2."""
