"""The exit codes that decide whether a replica is restarted, the same for jobs of all kinds."""

from __future__ import annotations

import signal

PERMANENT = range(1, 128)
"""The exit codes with which a replica fails its job. After any greater code it is restarted.

This is the rule of the training operator for a TFJob (`restartPolicy: ExitCode`), and no setting of
a TFJob changes it. The manifests of the other kinds contain these codes.

`trainer_module.task` ends with 1 or 2 if a restart does not help. Codes that a restart can help are
143 after SIGTERM and a checkpoint, 138 after the loss of another replica, and 137 after SIGKILL.
"""

_SIGNAL_OFFSET = 128
_SIGNALS = frozenset(signal.Signals)


def is_kill(exit_code: int) -> bool:
    """Return whether an exit code is that of a process that a signal ended."""
    return exit_code - _SIGNAL_OFFSET in _SIGNALS
