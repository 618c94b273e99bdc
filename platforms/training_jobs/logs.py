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
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\S* ?")
_ERROR_LINES = (
    # The last line of a traceback, which TensorFlow's lines may follow; else a similar line.
    re.compile(r"[\w.]*(Error|Exception)\b"),
    re.compile(r".*(\b\w*(Error|Exception)\b|Check failed|[Ff]atal)"),
)
_MOST_CHARACTERS = 500
_NO_OUTPUT = "no output"
_LOG_RECORD = re.compile(r"[IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING|INFO")
"""The start of log records of absl, of TensorFlow's C++ part and of TensorFlow's import."""


class Logs:
    """A thread for each replica, which copies the log of its pods."""

    def __init__(self, client: JobClient):
        self._client = client
        self._followers: dict[str, _Follower] = {}

    def update(self, pods: Sequence[Pod]) -> None:
        """Update the state of the pods, and start threads for new replicas."""
        by_replica = {pod.replica: pod for pod in pods}
        for replica in by_replica:
            if replica not in self._followers:
                self._followers[replica] = _Follower(self._client, replica)
        for replica, follower in self._followers.items():
            follower.update(by_replica.get(replica))

    def finish(self, seconds: float) -> None:
        """Return when all logs are copied, or after `seconds`."""
        deadline = time.monotonic() + seconds
        for follower in self._followers.values():
            follower.finish()
        for follower in self._followers.values():
            follower.join(max(0.0, deadline - time.monotonic()))

    def last_lines(self, replica: str) -> list[str]:
        """Return the last lines of a replica, at most LINES_KEPT."""
        follower = self._followers.get(replica)
        return list(follower.lines) if follower else []


def error_line(lines: Iterable[str]) -> str:
    """Return the line at the end of a log that most likely contains the error."""
    texts = [line.strip() for line in lines if line.strip()] or [_NO_OUTPUT]
    for pattern in _ERROR_LINES:
        for text in reversed(texts):
            if pattern.match(text):
                return text[:_MOST_CHARACTERS]
    return texts[-1][:_MOST_CHARACTERS]


def printed_line(lines: Iterable[str]) -> str:
    """Return the last line that is not a log record, such as the error of a wrong setting."""
    texts = [line.strip() for line in lines if line.strip()] or [_NO_OUTPUT]
    return next((text for text in reversed(texts) if not _LOG_RECORD.match(text)), texts[-1])


class _Follower(threading.Thread):
    """A thread that copies the log of a replica, from its first pod and from its later pods."""

    def __init__(self, client: JobClient, replica: str):
        super().__init__(name=f"log of {replica}", daemon=True)
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._client = client
        self._replica = replica
        self._changed = threading.Condition()
        self._updates = 0
        self._pod: Pod | None = None
        self._finishing = False
        self.start()

    def update(self, pod: Pod | None) -> None:
        """Set the current state of the pod; None: there is no pod."""
        with self._changed:
            self._pod = pod
            self._updates += 1
            self._changed.notify()

    def finish(self) -> None:
        """Make the thread end when it has copied the rest of the log."""
        with self._changed:
            self._finishing = True
            self._changed.notify()

    def run(self) -> None:
        updates, attempts = 0, 0
        reading = complete = ""
        position = _Position()
        while attempts < _LAST_ATTEMPTS:
            with self._changed:
                # After a broken connection the log is requested again only after the next update,
                # which shows whether the pod is still the same and still writes.
                while self._updates == updates and not self._finishing:
                    self._changed.wait()
                updates, pod, finishing = self._updates, self._pod, self._finishing
            if pod and pod.started and pod.uid != complete:
                if pod.uid != reading:
                    reading, position = pod.uid, _Position()
                try:
                    whole = self._read(pod, position)
                except Forbidden as error:
                    logging.warning("The log of %s cannot be shown: %s", self._replica, error)
                    return
                if whole and pod.ended:
                    complete = pod.uid
            if finishing:
                if pod is None or not pod.ended or pod.uid == complete:
                    return
                attempts += 1
                time.sleep(_SECONDS_BETWEEN_ATTEMPTS)

    def _read(self, pod: Pod, position: _Position) -> bool:
        """Copy the lines after `position`; return False if the connection broke before the end."""
        try:
            response = self._client.log(pod.name, position.since_seconds())
            try:
                for line in _lines(response):
                    text = position.advance(line)
                    if text is not None:
                        self.lines.append(text)
                        logging.info("[%s] %s", self._replica, text)
            finally:
                response.close()
        except urllib3.exceptions.ReadTimeoutError:
            return False
        except ApiException as error:
            # The log does not exist yet, or was deleted.
            logging.debug("No log of %s: %s", self._replica, error.reason)
            return False
        except urllib3.exceptions.HTTPError as error:
            logging.warning("The connection to the log of %s broke (%s)", self._replica, error)
            return False
        return True


class _Position:
    """The time stamp up to which a log was read, by which repeated lines are left out."""

    def __init__(self) -> None:
        self._last = self._before = (b"", b"")
        self._received: float | None = None

    def since_seconds(self) -> int | None:
        """Return the age of the first line to request in seconds; None: the whole log."""
        self._before = self._last
        if self._received is None:
            return None
        return int(time.monotonic() - self._received) + _OVERLAP_SECONDS

    def advance(self, line: bytes) -> str | None:
        """Return the text of a line without its time; None: an earlier response contained it."""
        found = _STAMP.match(line)
        if found:
            moment = (found[1], (found[2] or b"").ljust(9, b"0"))
            if moment <= self._before:
                return None
            self._last = max(self._last, moment)
            line = line[found.end() :]
        self._received = time.monotonic()
        # A progress bar overwrites itself after each \r.
        return line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace").rstrip()


def _lines(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield whole lines, and an incomplete last line at the regular end of the response."""
    rest = b""
    # In chunks as they arrive: a fixed number of bytes would delay the lines of a quiet log.
    for chunk in response.stream(None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
