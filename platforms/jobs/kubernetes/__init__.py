"""A training on Kubernetes, by whichever of its kinds of jobs the cluster has."""
