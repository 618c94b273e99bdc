"""The logs of a job's pods, copied line by line to the log of this process."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import urllib3
from absl import logging
from kubernetes.client.exceptions import ApiException

from platforms.training_jobs.client import Forbidden, JobClient
from platforms.training_jobs.pods import Pod

LINES_KEPT = 20

_OVERLAP_SECONDS = 60
"""Seconds of a log that are requested again after its connection broke, for delayed lines."""
_LAST_ATTEMPTS = 3
_SECONDS_BETWEEN_ATTEMPTS = 0.5
# The fraction of a second, if there is one, always has nine digits.
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT[\d:.]+)\S* ?")
_ERROR_LINES = (
    # The last line of a traceback, which TensorFlow's lines may follow; else a similar line.
    re.compile(r"[\w.]*(Error|Exception)\b"),
    re.compile(r".*(\b\w*(Error|Exception)\b|Check failed|[Ff]atal)"),
)
_MAX_CHARACTERS = 500
_LOG_RECORD = re.compile(r"[IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING|INFO")
"""The start of log records of absl, of TensorFlow's C++ part and of TensorFlow's import."""


class Logs:
    """A thread for each pod, which copies its log."""

    def __init__(self, client: JobClient):
        self._client = client
        self._logs: dict[str, _PodLog] = {}
        self._newest: dict[str, _PodLog] = {}

    def update(self, pods: Sequence[Pod]) -> None:
        """Start threads for new pods; `pods` are the newest of each replica."""
        for pod in pods:
            if pod.started and pod.uid not in self._logs:
                self._logs[pod.uid] = self._newest[pod.replica] = _PodLog(self._client, pod)
        by_uid = {pod.uid: pod for pod in pods}
        for uid, log in self._logs.items():
            log.update(by_uid.get(uid))

    def finish(self, seconds: float) -> None:
        """Return when the logs of pods that have ended are copied, or after `seconds`."""
        deadline = time.monotonic() + seconds
        for log in self._logs.values():
            log.finish()
        for log in self._logs.values():
            log.join(max(0.0, deadline - time.monotonic()))

    def last_lines(self, replica: str) -> list[str]:
        """Return the last lines of the newest pod of a replica, at most LINES_KEPT."""
        return list(self._newest[replica].lines) if replica in self._newest else []


def error_line(lines: Iterable[str]) -> str:
    """Return the line at the end of a log that most likely contains the error."""
    texts = [line.strip() for line in lines if line.strip()] or ["no output"]
    for pattern in _ERROR_LINES:
        for text in reversed(texts):
            if pattern.match(text):
                return text[:_MAX_CHARACTERS]
    return texts[-1][:_MAX_CHARACTERS]


def printed_line(lines: Iterable[str]) -> str:
    """Return the last line that is not a log record, such as the error of a wrong setting."""
    texts = [line.strip() for line in lines if line.strip()] or ["no output"]
    return next((text for text in reversed(texts) if not _LOG_RECORD.match(text)), texts[-1])


class _PodLog(threading.Thread):
    def __init__(self, client: JobClient, pod: Pod):
        super().__init__(name=f"log of {pod.replica}", daemon=True)
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._client, self._pod = client, pod
        self._gone = False
        self._updated = threading.Event()
        self._last, self._received = b"", 0.0
        self.start()

    def update(self, pod: Pod | None) -> None:
        """Set the current state of the pod; None: it is gone or replaced."""
        if pod:
            self._pod = pod
        self._gone = pod is None
        self._updated.set()

    def finish(self) -> None:
        """Make the thread end when it has copied the rest of the log."""
        self.update(self._pod if self._pod.ended else None)

    def run(self) -> None:
        attempts = 0
        # The successor of a pod may have the same name, so the log of a pod that is gone is not
        # requested.
        while not self._gone and attempts < _LAST_ATTEMPTS:
            ended = self._pod.ended
            try:
                complete = self._read()
            except Forbidden as error:
                logging.warning("The log of %s cannot be shown: %s", self._pod.replica, error)
                return
            if not ended:
                # The log is requested again only after the next look, which shows whether the pod
                # still exists and still writes.
                self._updated.clear()
                if not (self._gone or self._pod.ended):
                    self._updated.wait()
            elif complete:
                return
            else:
                attempts += 1
                time.sleep(_SECONDS_BETWEEN_ATTEMPTS)

    def _read(self) -> bool:
        """Copy the lines since the last one; return False if the connection broke."""
        before, since = self._last, None
        if self._received:
            since = int(time.monotonic() - self._received) + _OVERLAP_SECONDS
        try:
            response = self._client.log(self._pod.name, since)
            try:
                for line in _lines(response):
                    self._copy(line, before)
            finally:
                response.close()
        except urllib3.exceptions.ReadTimeoutError:
            return False
        except ApiException as error:
            # The log does not exist yet, or was deleted.
            logging.debug("No log of %s: %s", self._pod.replica, error.reason)
            return False
        except urllib3.exceptions.HTTPError as error:
            logging.warning("The connection to the log of %s broke (%s)", self._pod.replica, error)
            return False
        return True

    def _copy(self, line: bytes, before: bytes) -> None:
        """Copy a line without its time, unless an earlier response contained it."""
        found = _STAMP.match(line)
        if found:
            if found[1] <= before:
                return
            self._last = max(self._last, found[1])
            line = line[found.end() :]
        self._received = time.monotonic()
        # A progress bar overwrites itself after each \r.
        text = line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace").rstrip()
        self.lines.append(text)
        logging.info("[%s] %s", self._pod.replica, text)


def _lines(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield whole lines, and an incomplete last line at the regular end of the response."""
    rest = b""
    # In chunks as they arrive: a fixed number of bytes would delay the lines of a quiet log.
    for chunk in response.stream(None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
