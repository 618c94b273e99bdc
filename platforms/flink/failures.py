"""The cause of a failed Flink job in one line."""

from __future__ import annotations

import re
import sys

import grpc

from core.errors import UserError

_PYTHON_ERROR = re.compile(
    r"^(?P<name>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\w*): (?P<text>.*?)"
    r"(?: \[while running .*\])?$",
    re.MULTILINE,
)
_JAVA_ERROR = re.compile(
    r"^(?:Caused by: )?[a-z][\w.$]*\.\w+(?:Exception|Error): (.*)$", re.MULTILINE
)
_FAILED_STATE = re.compile(r"^Pipeline \S+ failed in state \w+: (?:[\w.$]+(?:Exception|Error): )?")


class FlinkError(UserError):
    """A job that Flink could not complete, for a reason outside the input."""


def worker_error(message: str) -> UserError | None:
    """Return the error that a worker raised, from the message of a failed job.

    The message contains a Python traceback inside of a Java traceback. A UserError keeps its class,
    so that wrong input has the same exit code as on every other runner.

    Args:
      message: the message of the job.

    Returns:
      A UserError, or a FlinkError with another error of Python; None if the message has neither.
    """
    found = _PYTHON_ERROR.findall(message.replace("\\n", "\n"))
    python = [(name, text) for name, text in found if not name.startswith(("java.", "org."))]
    for name, text in reversed(python):
        module, _, kind = name.rpartition(".")
        # Nothing is imported, because the text may come from a review.
        error = getattr(sys.modules.get(module), kind, None)
        if isinstance(error, type) and issubclass(error, UserError):
            return error(text)
    if python:
        return FlinkError("{}: {}".format(*python[-1]))
    return None


def java_cause(message: str) -> str:
    """Return the message of the innermost Java error, or else a line that describes the problem.

    Args:
      message: the message of a failed job, or the log of a job server.
    """
    lines = message.strip().splitlines() or [""]
    # The last line of a Python traceback is its error.
    line = lines[-1 if lines[0].startswith("Traceback") else 0]
    found = _JAVA_ERROR.findall(message)
    return _FAILED_STATE.sub("", found[-1] if found else line).strip()


def grpc_problem(error: BaseException) -> str:
    """Return the problem that gRPC reports, without its debug information.

    Args:
      error: a grpc.RpcError or grpc.FutureTimeoutError.
    """
    if isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return "no connection within the timeout"
