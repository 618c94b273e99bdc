"""ServingCheck: serves a candidate as in production, and blocks the push if it fails."""
