"""Processes that depend on nothing but what their parent or their user gives them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_START = str(Path(__file__).parents[1] / "amazon_reviews_start.py")
_PR_SET_PDEATHSIG = 1

_OF_OTHER_JOBS = (
    # The cluster of a TFJob, a notebook or SageMaker, and that of a TrainJob of ours.
    "TF_CONFIG",
    "TRAINING_CLUSTER",
    # The chief of a distributed Keras Tuner.
    "KERASTUNER_ORACLE_IP",
    "KERASTUNER_ORACLE_PORT",
    "KERASTUNER_TUNER_ID",
)
"""Environment variables by which a process would join the processes of another job."""
_KERAS = {"KERAS_BACKEND": "tensorflow", "TF_USE_LEGACY_KERAS": "1"}
"""The Keras that TensorFlow imports: tf_keras, which the models require.

Keras 3, the default, also imports matplotlib, pandas, scikit-learn and IPython, which takes a fifth
of the time. Keras Tuner imports Keras 3, whose backend also depends on ~/.keras/keras.json.
"""


def command(module: str, *arguments: str, ends_with_parent: bool = True) -> list[str]:
    """Return the command that runs a module of ours in a child process.

    The child imports our packages from where this process imports them, and nothing from the
    working directory.

    Args:
      module: dotted name of the module, which runs as `__main__`.
      arguments: the arguments of the module.
      ends_with_parent: whether the child is killed when this process ends, or the thread of this
        process that started the child.
    """
    parent = os.getpid() if ends_with_parent else 0
    return [sys.executable, _START, str(parent), module, *arguments]


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, whatever either of them does then.

    Args:
      parent: the process id of the parent, which may have ended already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def ignore_other_jobs() -> str:
    """Remove what other jobs export from the environment of this process and of its children.

    Variables that only change the speed of TensorFlow, its log or its devices stay.

    Returns:
      One line that names the variables that were set to other values; empty if there were none.
    """
    ours = {**dict.fromkeys(_OF_OTHER_JOBS), **_KERAS}
    ignored = [name for name, value in ours.items() if os.environ.get(name, value) != value]
    for name in _OF_OTHER_JOBS:
        os.environ.pop(name, None)
    os.environ.update(_KERAS)
    return f"ignored environment variables of other jobs: {', '.join(ignored)}" if ignored else ""
