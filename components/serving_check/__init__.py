"""ServingCheck: tries a model as production would, and blocks the push of one that fails."""
