"""ServingCheck: loads and calls a model as a server does, and blocks the push if it fails."""
