"""A Flink cluster on Kubernetes for `beam.runner: flink`: Flink, Beam's job server, policies."""
