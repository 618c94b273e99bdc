"""The processes of a training: TF_CONFIG, a local cluster, collective sums, the end."""
