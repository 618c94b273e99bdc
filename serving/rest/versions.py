"""The version that answers requests, and its replacement by a newer one."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from core.errors import ServerError, cause
from core.storage import is_url
from serving.rest.metrics import Metrics
from serving.rest.model import LoadedModel
from serving.versions import NoModelError, versions

_MAX_CHARACTERS = 300
"""Greatest number of characters of the reason why a version is rejected."""
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0
"""Seconds after which a rejected version is loaded again; the pause doubles after each attempt."""
_log = logging.getLogger(__name__)

Files = list[tuple[str, int, int]]
"""The name, the size in bytes and the time of the last change in nanoseconds, for each file of a
version, sorted."""


@dataclass
class _Found:
    """The files of a version when they were found, and the next attempt to load them."""

    files: Files
    retry: float = 0.0
    """The time of the attempt, by the monotonic clock; 0: now."""
    pause: float = 0.0
    """Seconds between the last attempt and the next one; 0: there was no attempt."""
    is_loaded: bool = False
    """Whether these files are those of the model that was loaded last from the version."""


class _State(NamedTuple):
    """What TensorFlow Serving's API reports of a version.

    Attributes:
      name: AVAILABLE if the version answers new requests, else END.
      problem: the reason why the files of the version are rejected; empty if they are not.
    """

    name: Literal["AVAILABLE", "END"]
    problem: str = ""

    @property
    def code(self) -> str:
        """The name of the error code."""
        return "INVALID_ARGUMENT" if self.problem else "OK"


class ServedVersions:
    """The model that answers requests: the newest version in a folder that can be loaded.

    If the newest version is deleted, the previous one answers again, as in TensorFlow Serving.

    Attributes:
      folder: the serving folder or its URL.
      current: the model that answers new requests.
    """

    def __init__(self, folder: str, metrics: Metrics):
        """Load the newest version that can be loaded.

        Args:
          folder: the serving folder or its URL.
          metrics: the metrics that are updated.

        Raises:
          NoModelError: the folder contains no version.
          ServerError: no version can be loaded. The message has the error of the newest one.
          OSError: the folder cannot be read.
        """
        self.folder = folder
        self._metrics = metrics
        self._states: dict[int, _State] = {}  # version -> its state
        self._found: dict[int, _Found] = {}  # version -> its files
        model = self._load_newer()
        if model is not None:
            self.current = model
            self._switch(model)
        elif not self._states:
            raise NoModelError(folder)
        else:
            number = max(self._states)
            problem = self._states[number].problem
            raise ServerError(f"no model in {folder} can be served; version {number}: {problem}")

    async def watch(self, seconds: float) -> None:
        """Poll the folder, load its newest version in a thread if it is new, and switch to it.

        Errors do not end the polling. One is logged when it begins, and not again until it changes.

        Args:
          seconds: the seconds between two polls.
        """
        logged = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                model = await asyncio.to_thread(self._load_newer, self.current.version)
            except Exception as error:
                if logged != cause(error):
                    logged = cause(error)
                    _log.warning("paths.serving: %s cannot be read: %s", self.folder, logged)
            else:
                logged = ""
                if model is not None:
                    self._switch(model)

    def status(self, version: str | None = None) -> list[dict[str, Any]]:
        """Return the `model_version_status` of TensorFlow Serving's API, the newest version first.

        Args:
          version: the number of one version; None for all. An unknown version has no status.
        """
        return [
            {
                "version": str(number),
                "state": state.name,
                "status": {"error_code": state.code, "error_message": state.problem},
            }
            for number, state in sorted(self._states.items(), reverse=True)
            if version in (None, str(number))
        ]

    def _switch(self, model: LoadedModel) -> None:
        """Answer new requests with `model`; the previous model answers those in the queue."""
        # At the start both are the same version.
        self._states[self.current.version] = _State("END")
        self._states[model.version] = _State("AVAILABLE")
        self.current = model
        self._metrics.switch(model.version, model.labels)
        _log.info("version %s of %s answers requests now", model.version, self.folder)

    def _load_newer(self, current: int | None = None) -> LoadedModel | None:
        """Load and return the newest version that can be loaded; None if it is `current`.

        A local version with the number `current` is loaded again after its files have changed.

        Raises:
          OSError: the folder cannot be read.
        """
        for path in versions(self.folder):
            number = int(os.path.basename(path))
            # In a bucket each poll of the files would be billed.
            if number == current and is_url(path):
                return None
            model = self._load(number, path, current)
            if model is not None or number == current:
                return model
        return None

    def _load(self, number: int, path: str, current: int | None) -> LoadedModel | None:
        """Load and return a version; None if it is not yet complete, loaded already or rejected.

        Raises:
          OSError: the files of the version cannot be listed.
        """
        found, files = self._found.get(number), _files(path)
        if found is None or found.files != files:
            found = self._found[number] = _Found(files)
            # A version that is copied file by file may be incomplete. So a running server waits
            # until the files remain the same for a poll.
            if current is not None:
                return None
        if number == current and found.is_loaded:
            return None
        # The files may be complete, and the reason of the rejection temporary: missing rights, too
        # many open files, a bucket that does not respond.
        if time.monotonic() < found.retry:
            return None
        # A replaced model has cycles of references, and would stay in memory for many versions.
        gc.collect()
        try:
            model = LoadedModel(path)
        except Exception as error:  # a damaged file can raise any exception
            found.pause = min(2 * found.pause or _FIRST_PAUSE, _LONGEST_PAUSE)
            found.retry = time.monotonic() + found.pause
            self._metrics.loads.labels("rejected").inc()
            # A version that answers already does so from memory.
            name: Literal["AVAILABLE", "END"] = "AVAILABLE" if number == current else "END"
            state = _State(name, cause(error)[:_MAX_CHARACTERS])
            if self._states.get(number) != state:
                _log.error("%s is rejected: it cannot be served: %s", path, state.problem)
            self._states[number] = state
            return None
        found.is_loaded = True
        self._metrics.loads.labels("loaded").inc()
        return model


def _files(path: str) -> Files:
    """Return the names, sizes and times of the files of a version, local or at a URL."""
    found = []
    for folder, _, names in tf.io.gfile.walk(path):
        for name in names:
            # A gs:// listing gives folders a slash at the end.
            file = f"{folder.rstrip('/')}/{name}"
            try:
                status = tf.io.gfile.stat(file)
            except tf.errors.NotFoundError:
                # The file is a link without a target, or was removed since.
                continue
            found.append((name, status.length, status.mtime_nsec))
    return sorted(found)
