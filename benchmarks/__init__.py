"""Scripts that measure what the documentation claims."""
