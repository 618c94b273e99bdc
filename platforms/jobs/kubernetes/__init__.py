"""A training as a job on Kubernetes: what the jobs of all kinds have in common."""
