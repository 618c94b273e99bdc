"""The logs of a job's pods, copied line by line to the log of this process."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence

import urllib3
from absl import logging
from kubernetes.client.exceptions import ApiException

from platforms.kubernetes_api import server_message
from platforms.training_jobs.client import JobClient
from platforms.training_jobs.pods import Pod

_LINES_KEPT = 20
_LAST_SECONDS = 15.0
"""Timeout of the rest of the logs after the end of a job."""
# The fraction of a second, if there is one, always has nine digits. So texts compare like times.
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT[\d:.]+)\S* ?")
_ERRORS = (r"[\w.]*(Error|Exception)\b", r".*(Error|Exception|Check failed|[Ff]atal)", "")
"""The patterns of the line with an error, the best first: the last line of a traceback, which
TensorFlow's log may follow; a similar line; any line."""
_PRINTED = (r"(?![IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING|INFO)", "")
"""The patterns of a printed line, the best first: a line that is no log record of absl, of
TensorFlow's C++ part or of TensorFlow's import; any line."""
_MAX_CHARACTERS = 500


class Logs:
    """The logs of a job's pods, which one thread for each pod copies.

    Args:
      client: the client that reads the logs.
    """

    def __init__(self, client: JobClient):
        self._client = client
        self._logs: dict[str, _PodLog] = {}

    def update(self, pods: Sequence[Pod]) -> None:
        """Start or continue to copy the logs of pods, which must exist."""
        for pod in pods:
            if pod.phase == "Running" or pod.ended:
                self._logs.setdefault(pod.uid, _PodLog(self._client)).copy(pod)

    def finish(self, pods: Sequence[Pod]) -> None:
        """Wait until the logs of the ended pods are copied, at most 15 seconds.

        Args:
          pods: pods that exist. Those that have not ended are ignored.
        """
        deadline = time.monotonic() + _LAST_SECONDS
        ended = [pod for pod in pods if pod.ended]
        while time.monotonic() < deadline:
            self.update(ended)
            if all(self._logs[pod.uid].complete for pod in ended):
                return
            time.sleep(0.1)

    def last_lines(self, pod: Pod) -> list[str]:
        """Return the last lines of the log of a pod, at most 20; an empty list without a copy."""
        return list(self._logs[pod.uid].lines) if pod.uid in self._logs else []


class _PodLog:
    """The log of one pod.

    Attributes:
      lines: the last lines that were copied.
      complete: whether all lines were copied, or the log cannot be read.
    """

    def __init__(self, client: JobClient):
        self.lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self.complete = False
        self._client = client
        self._thread: threading.Thread | None = None
        self._last = b""

    def copy(self, pod: Pod) -> None:
        """Start a thread, unless one still runs or the log is complete."""
        if not (self.complete or (self._thread and self._thread.is_alive())):
            name = f"log of {pod.replica}"
            self._thread = threading.Thread(target=self._run, args=[pod], name=name, daemon=True)
            self._thread.start()

    def _run(self, pod: Pod) -> None:
        """Copy the lines after the last one, until the pod ends or the connection breaks."""
        before = self._last
        try:
            response = self._client.log(pod.name)
            with contextlib.closing(response):
                for line in _lines(response):
                    self._copy_line(line, before, pod.replica)
        except ApiException as error:
            # After other errors, the log does not exist yet or the node does not respond.
            if error.status in (403, 404):
                self.complete = True
                problem = server_message(error)
                logging.warning("The log of %s cannot be read: %s", pod.replica, problem)
        except urllib3.exceptions.HTTPError:
            pass  # The connection broke, or no line came for a long time.
        else:
            self.complete = pod.ended

    def _copy_line(self, line: bytes, before: bytes, replica: str) -> None:
        """Copy a line without its time, unless an earlier response contained it."""
        found = _STAMP.match(line)
        if found:
            if found[1] <= before:
                return
            self._last = max(self._last, found[1])
            line = line[found.end() :]
        # A progress bar overwrites itself after each \r.
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace").rstrip()
        self.lines.append(text)
        logging.info("[%s] %s", replica, text)


def error_line(lines: Sequence[str], printed: bool = False) -> str:
    """Return the line at the end of a log that most likely contains the error.

    Args:
      lines: the last lines of the log.
      printed: whether the error is a printed line, such as that of a wrong setting, and not a log
        record.

    Returns:
      At most 500 characters; `no output` if all lines are blank.
    """
    texts = [line.strip() for line in reversed(lines) if line.strip()] or ["no output"]
    patterns = _PRINTED if printed else _ERRORS
    found = (text for pattern in patterns for text in texts if re.match(pattern, text))
    return next(found)[:_MAX_CHARACTERS]


def _lines(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield whole lines, and an incomplete last line at the regular end of the response."""
    rest = b""
    # Without an amount, chunks are returned as they arrive. With an amount, urllib3 would wait
    # until so many bytes have arrived.
    for chunk in response.stream(None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
