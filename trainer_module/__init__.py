"""The training that `run_fn` starts; importable without tfx."""
