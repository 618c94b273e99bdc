"""The exit codes of `amazon-reviews`."""

PUSHED = 0
"""The command succeeded. `run` has pushed a model, or blessed one under
`push.destination: none`."""
FAILED = 1
"""The command failed. If a component of `run` failed, the last lines name the component, its first
error line and the log."""
BAD_INPUT = 2
"""Settings or input are wrong, or another run uses `paths.root`. One line names the problem and the
remedy; if the files of `run` cannot be read, it follows all problems of the data. `data check`: a
run would not start."""
NOT_BLESSED = 3
"""`run` has trained a model that was not pushed, because it was not blessed or failed the serving
check."""
DRIFT = 4
"""`watch` has found that new reviews differ from those that the served model was evaluated on. It
is not 3: after `watch --then run`, 3 means that the new model was not pushed."""
INTERRUPTED = 130
"""Ctrl-C, by the convention of shells, and SIGTERM to `run` and to `predict --input`. A training
writes a checkpoint first; a second signal ends it immediately."""
