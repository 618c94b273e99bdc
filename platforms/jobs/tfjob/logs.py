"""Logs of a TFJob's pods, passed on to this process's log line by line while they are written."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import urllib3
from absl import logging
from kubernetes.client.exceptions import ApiException

from platforms.jobs.tfjob.client import Forbidden, TFJobClient
from platforms.jobs.tfjob.pods import Pod

LINES_KEPT = 20

_SECONDS_TWICE = 60
"""Of a log that broke off are asked for once more, should its lines have been late."""
_LAST_ATTEMPTS = 3
_SECONDS_BETWEEN = 0.5
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\S* ?")
_ERROR_LINES = (
    # The end of a traceback, though TensorFlow has more lines to say; else what sounds like one.
    re.compile(r"[\w.]*(Error|Exception)\b"),
    re.compile(r".*(\b\w*(Error|Exception)\b|Check failed|[Ff]atal)"),
)
_LONGEST = 500
_LOGGED = re.compile(r"[IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING|INFO")
"""How lines of absl, of TensorFlow's C++ part and of its start begin."""


class Logs:
    """One thread for each replica, from the first look at its pod on."""

    def __init__(self, client: TFJobClient):
        self._client = client
        self._followers: dict[str, _Follower] = {}

    def update(self, pods: Sequence[Pod]) -> None:
        """Tells what was seen of the pods at this moment."""
        there = {pod.replica: pod for pod in pods}
        for replica in there:
            if replica not in self._followers:
                self._followers[replica] = _Follower(self._client, replica)
        for replica, follower in self._followers.items():
            follower.see(there.get(replica))

    def finish(self, seconds: float) -> None:
        """Waits, for `seconds` at most, until all is passed on that was written."""
        deadline = time.monotonic() + seconds
        for follower in self._followers.values():
            follower.finish()
        for follower in self._followers.values():
            follower.join(max(0.0, deadline - time.monotonic()))

    def last_lines(self, replica: str) -> list[str]:
        """Up to LINES_KEPT of a replica's last lines."""
        follower = self._followers.get(replica)
        return list(follower.lines) if follower else []


def telling_line(lines: Iterable[str]) -> str:
    """The line of a log's end that tells best why it ended."""
    said = [line.strip() for line in lines if line.strip()] or ["it said nothing"]
    for pattern in _ERROR_LINES:
        for line in reversed(said):
            if pattern.match(line):
                return line[:_LONGEST]
    return said[-1][:_LONGEST]


def printed_line(lines: Iterable[str]) -> str:
    """The last line that was printed instead of logged: a wrong setting, as `task` tells it."""
    said = [line.strip() for line in lines if line.strip()] or ["it said nothing"]
    return next((line for line in reversed(said) if not _LOGGED.match(line)), said[-1])


class _Follower(threading.Thread):
    """Reads the log of a replica: of one pod, and of those that take its place."""

    def __init__(self, client: TFJobClient, replica: str):
        super().__init__(name=f"log of {replica}", daemon=True)
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._client = client
        self._replica = replica
        self._news = threading.Condition()
        self._looks = 0
        self._pod: Pod | None = None
        self._finishing = False
        self.start()

    def see(self, pod: Pod | None) -> None:
        """The pod as it is now; None: there is none."""
        with self._news:
            self._pod = pod
            self._looks += 1
            self._news.notify()

    def finish(self) -> None:
        """The last look was the last: the thread ends when it has read what there is."""
        with self._news:
            self._finishing = True
            self._news.notify()

    def run(self) -> None:
        looks, attempts = 0, 0
        reading = complete = ""
        position = _Position()
        while attempts < _LAST_ATTEMPTS:
            with self._news:
                # A log that breaks off is not asked for again before the next look: only then it
                # is known whether the pod is still the same, and whether it writes any more.
                while self._looks == looks and not self._finishing:
                    self._news.wait()
                looks, pod, finishing = self._looks, self._pod, self._finishing
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
                time.sleep(_SECONDS_BETWEEN)

    def _read(self, pod: Pod, position: _Position) -> bool:
        """Passes on what comes after `position`; whether the log came to an end by itself."""
        try:
            response = self._client.log(pod.name, position.since_seconds())
            try:
                for line in _lines(response):
                    text = position.take(line)
                    if text is not None:
                        self.lines.append(text)
                        logging.info("[%s] %s", self._replica, text)
            finally:
                response.close()
        except urllib3.exceptions.ReadTimeoutError:
            return False
        except ApiException as error:
            # Not there yet, or not any more.
            logging.debug("No log of %s: %s", self._replica, error.reason)
            return False
        except urllib3.exceptions.HTTPError as error:
            logging.warning("The log of %s broke off (%s)", self._replica, error)
            return False
        return True


class _Position:
    """How far a log was read. What is sent twice is left out by its time."""

    def __init__(self) -> None:
        self._last = (b"", b"")
        self._lines_then = 0
        self._again = 0
        self._received: float | None = None

    def since_seconds(self) -> int | None:
        """From when on to ask for it now; None: all of it."""
        self._again = 0
        if self._received is None:
            return None
        return int(time.monotonic() - self._received) + _SECONDS_TWICE

    def take(self, line: bytes) -> str | None:
        """The text of a line without its time; None: it was taken before."""
        found = _STAMP.match(line)
        if found:
            time_of_line = (found[1], (found[2] or b"").ljust(9, b"0"))
            if time_of_line < self._last:
                return None
            if time_of_line == self._last:
                # Lines of one moment are told apart by their number.
                self._again += 1
                if self._again <= self._lines_then:
                    return None
                self._lines_then += 1
            else:
                self._last, self._lines_then, self._again = time_of_line, 1, 1
            line = line[found.end() :]
        self._received = time.monotonic()
        # A progress bar writes over itself.
        return line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace").rstrip()


def _lines(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Whole lines, and the rest of one at a regular end."""
    rest = b""
    # By chunks as they come, not by a number of bytes that a quiet log takes minutes to fill.
    for chunk in response.stream(None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
