"""The exit codes of `amazon-reviews`."""

PUSHED = 0
FAILED = 1
BAD_INPUT = 2
NOT_BLESSED = 3
