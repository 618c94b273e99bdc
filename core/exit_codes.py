"""The exit codes of `amazon-reviews`."""

PUSHED = 0
FAILED = 1
BAD_INPUT = 2
NOT_BLESSED = 3
INTERRUPTED = 130
"""Ended by Ctrl-C: 128 + SIGINT, the convention of shells."""
