"""Everything under run_fn; importable without tfx."""
