"""The logs of a job's pods, copied line by line to the log of this process."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence

import urllib3
from absl import logging
from kubernetes.client.exceptions import ApiException

from platforms.training_jobs.client import JobClient, message_of
from platforms.training_jobs.pods import Pod

LINES_KEPT = 20
_LAST_SECONDS = 15.0
"""Seconds for the rest of the logs after the end of a job."""
_SECONDS_BETWEEN_ATTEMPTS = 0.5
# The fraction of a second, if there is one, always has nine digits.
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT[\d:.]+)\S* ?")
# The last line of a traceback, which TensorFlow's lines may follow; else a similar line, or any.
_ERRORS = (r"[\w.]*(Error|Exception)\b", r".*(Error|Exception|Check failed|[Ff]atal)", "")
# A line that is no log record of absl, of TensorFlow's C++ part or of TensorFlow's import.
_PRINTED = (r"(?![IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING|INFO)", "")
_MAX_CHARACTERS = 500


class Logs:
    """A thread for each pod, which copies its log."""

    def __init__(self, client: JobClient):
        self._client = client
        self._logs: dict[str, _PodLog] = {}

    def update(self, pods: Sequence[Pod]) -> None:
        """Start threads for new pods; `pods` are the newest of each replica."""
        for pod in pods:
            if pod.uid not in self._logs and (pod.phase == "Running" or pod.ended):
                self._logs[pod.uid] = _PodLog(self._client, pod)
        by_uid = {pod.uid: pod for pod in pods}
        for uid, log in self._logs.items():
            log.update(by_uid.get(uid))

    def finish(self) -> None:
        """Return when the logs of pods that have ended are copied, or after some seconds."""
        deadline = time.monotonic() + _LAST_SECONDS
        for log in self._logs.values():
            log.update(log.pod if log.pod.ended else None)
        for log in self._logs.values():
            log.join(max(0.0, deadline - time.monotonic()))
            log.update(None)

    def last_lines(self, pod: Pod) -> list[str]:
        """Return the last lines of a pod, at most LINES_KEPT."""
        return list(self._logs[pod.uid].lines) if pod.uid in self._logs else []


def error_line(lines: Sequence[str], printed: bool = False) -> str:
    """Return the line at the end of a log that most likely contains the error.

    Args:
      printed: the error is a printed line, such as that of a wrong setting, and no log record.
    """
    texts = [line.strip() for line in reversed(lines) if line.strip()] or ["no output"]
    patterns = _PRINTED if printed else _ERRORS
    found = (text for pattern in patterns for text in texts if re.match(pattern, text))
    return next(found)[:_MAX_CHARACTERS]


class _PodLog(threading.Thread):
    def __init__(self, client: JobClient, pod: Pod):
        super().__init__(name=f"log of {pod.replica}", daemon=True)
        self.pod = pod
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._client = client
        self._gone = False
        self._updated = threading.Event()
        self._last = b""
        self.start()

    def update(self, pod: Pod | None) -> None:
        """Set the current state of the pod; None: it is gone or replaced."""
        if pod:
            self.pod = pod
        self._gone = pod is None
        self._updated.set()

    def run(self) -> None:
        while not self._gone:
            ended = self.pod.ended
            try:
                self._copy()
                if ended:
                    return
            except (ApiException, urllib3.exceptions.HTTPError) as error:
                # The log does not exist yet or was deleted, the connection broke, or no line came.
                if isinstance(error, ApiException) and error.status == 403:
                    text = message_of(error)
                    logging.warning("The log of %s cannot be shown: %s", self.pod.replica, text)
                    return
            # The log is requested again only after the next look, which shows whether the pod still
            # exists: its successor may have the same name.
            self._updated.clear()
            if not self._gone and self.pod.ended == ended:
                self._updated.wait(_SECONDS_BETWEEN_ATTEMPTS if ended else None)

    def _copy(self) -> None:
        """Copy the lines after the last one, until the pod ends."""
        before, response = self._last, self._client.log(self.pod.name)
        try:
            for line in _lines(response):
                self._copy_line(line, before)
        finally:
            response.close()

    def _copy_line(self, line: bytes, before: bytes) -> None:
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
        logging.info("[%s] %s", self.pod.replica, text)


def _lines(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield whole lines, and an incomplete last line at the regular end of the response."""
    rest = b""
    # In chunks as they arrive: a fixed number of bytes would delay the lines of a quiet log.
    for chunk in response.stream(None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
