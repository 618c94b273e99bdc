"""The exit codes of `amazon-reviews`."""

PUSHED = 0
"""The command succeeded. `run` has pushed a model (with `push.destination: none`: blessed one)."""
FAILED = 1
"""The command failed. If a component of `run` failed, the last lines name the component, its first
error line and the log."""
BAD_INPUT = 2
"""Settings or input are wrong, or another run uses `paths.root`. One line names the problem and the
remedy."""
NOT_BLESSED = 3
"""`run` has trained a model that was not blessed and therefore not pushed."""
INTERRUPTED = 130
"""Ctrl-C, by the convention of shells. A training writes a checkpoint first; a second Ctrl-C ends
it immediately."""
