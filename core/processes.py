"""Child processes that are independent of the working directory and of other jobs, and signals."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from core.storage import NO_HOME

_START = str(Path(__file__).parents[1] / "amazon_reviews_start.py")
_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
"""Parameters of glibc's `mallopt`, from malloc.h."""

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

_LOCALE = {"LC_ALL": "C.UTF-8"}
"""The locale by which TensorFlow lower-cases words. In the locale of a Turkish machine the lower
case of `I` is another letter, and a model would know other words there than on a cluster."""


def command(module: str, *arguments: str, ends_with_parent: bool = True) -> list[str]:
    """Return the command that runs a module of ours in a child process.

    The child imports our packages from where this process imports them, and nothing from the
    working directory.

    Args:
      module: the full name of the module, which is run as `__main__`.
      arguments: its command-line arguments.
      ends_with_parent: whether the kernel kills the child when the thread that started it ends.
    """
    parent = os.getpid() if ends_with_parent else 0
    return [sys.executable, _START, str(parent), module, *arguments]


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, even if it is busy or stopped.

    Args:
      parent: the process id of the parent. If it has ended already, this process is killed at once.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def set_environment() -> None:
    """Set the environment of this process and its children: our Keras and locale, no other job.

    A user without a home folder, as in a container with any user id, gets one that does not exist.

    One line on standard error names the variables of other jobs. Variables that affect only the
    speed, the log or the devices of TensorFlow are kept.
    """
    ours = {**dict.fromkeys(_OF_OTHER_JOBS), **_KERAS}
    ignored = [name for name, value in ours.items() if os.environ.get(name, value) != value]
    for name in _OF_OTHER_JOBS:
        os.environ.pop(name, None)
    os.environ.update(_KERAS | _LOCALE)
    if os.path.expanduser("~") == "~":
        # Keras and Numba would create a folder with the name `~` in the working directory.
        os.environ["HOME"] = NO_HOME
    if ignored:
        print(f"ignored environment variables of other jobs: {', '.join(ignored)}", file=sys.stderr)


@contextlib.contextmanager
def large_imports() -> Iterator[None]:
    """Import large libraries without garbage collection.

    Their objects are excluded from later collections too. TensorFlow and TFX create a million
    objects that exist until the end of the process. The collector would scan them repeatedly, which
    takes a fifth of the time of the import, and two fifths of the time of a command that then
    creates many objects, such as `amazon-reviews compile`.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def keep_freed_memory() -> None:
    """Let this process use freed memory again instead of returning it to the kernel.

    By default glibc returns what a batch has freed, and the next batch gets new pages, which the
    kernel clears one by one. That took a tenth of the CPU time of batch scoring; the process needs
    about 30 MB more. See mallopt(3).
    """
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_TRIM_THRESHOLD, 256 << 20)
    libc.mallopt(_M_TOP_PAD, 64 << 20)
    # The largest threshold that glibc accepts.
    libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)


@contextlib.contextmanager
def signals_to(
    handler: Callable[[signal.Signals], None], *numbers: signal.Signals
) -> Iterator[None]:
    """Pass signals to `handler` within the context.

    Python allows handlers only in the main thread. In another thread the context changes nothing.

    Args:
      handler: called with the signal, in the main thread. In a training process a thread that waits
        for SIGTERM calls it, so there it may only set a flag.
      numbers: the signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda n, frame: handler(signal.Signals(n)))
        for number in numbers
    }
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, signal.SIG_DFL if handler_before is None else handler_before)
