"""The pushed model at work."""
