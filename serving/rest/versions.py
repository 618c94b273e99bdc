"""The versions in the serving folder: which one answers, and when another one replaces it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from typing import Any

import tensorflow as tf

from core.errors import ServerError, cause
from serving.rest.metrics import Metrics
from serving.rest.model import BrokenModelError, LoadedModel
from serving.versions import NoModelError, versions

_log = logging.getLogger(__name__)

Files = list[tuple[str, int, int]]


class ServedVersions:
    """The model that answers requests: the newest of the versions in a folder that are not broken.

    As in TensorFlow Serving, if the newest version is deleted, the previous one answers again.

    Attributes:
      folder: the serving folder.
      current: the model that answers new requests.
    """

    current: LoadedModel

    def __init__(self, folder: str, metrics: Metrics):
        self.folder = folder
        self._metrics = metrics
        self._states: dict[int, tuple[str, str]] = {}  # version -> state, error
        self._rejected: dict[str, Files] = {}  # path -> its files when it was loaded

    def load_first(self) -> None:
        """Load the newest version that is not broken.

        Raises:
          NoModelError: there is no version.
          ServerError: all versions are broken.
        """
        model = self._load_newer()
        if model is not None:
            self._switch(model)
        elif not self._states:
            raise NoModelError(self.folder)
        else:
            number, (_, problem) = max(self._states.items())
            raise ServerError(f"no model in {self.folder} can be served: {number} {problem}")

    async def watch(self, seconds: float) -> None:
        """Look for a newer version every `seconds`, load it in a thread, and switch to it.

        No error ends it: the next version must be found after any problem with this one.
        """
        while True:
            await asyncio.sleep(seconds)
            try:
                model = await asyncio.to_thread(self._load_newer)
            except Exception as error:
                _log.warning("paths.serving: %s cannot be read: %s", self.folder, cause(error))
            else:
                if model is not None:
                    self._switch(model)

    def status(self, version: str | None = None) -> list[dict[str, Any]]:
        """Return TensorFlow Serving's `model_version_status` of one version or of all, newest
        first."""
        codes = {True: "INVALID_ARGUMENT", False: "OK"}
        return [
            {
                "version": str(number),
                "state": state,
                "status": {"error_code": codes[bool(problem)], "error_message": problem},
            }
            for number, (state, problem) in sorted(self._states.items(), reverse=True)
            if version in (None, str(number))
        ]

    def _switch(self, model: LoadedModel) -> None:
        """Make `model` answer new requests; the previous model answers the queued requests."""
        before = getattr(self, "current", None)
        self.current = model
        if before is not None:
            self._states[before.version] = ("END", "")
        self._states[model.version] = ("AVAILABLE", "")
        self._metrics.version.set(model.version)
        _log.info("version %s of %s answers requests now", model.version, self.folder)

    def _load_newer(self) -> LoadedModel | None:
        """Return the newest version that is not broken; None if it is the one that answers."""
        current = getattr(self, "current", None)
        for path in versions(self.folder):
            if current is not None and _number(path) == current.version:
                return None
            # A version that is copied file by file is complete only after its first load failed.
            files = _files(path)
            if self._rejected.get(path) == files:
                continue
            # A replaced model has cycles of references, and would stay in memory for many versions.
            gc.collect()
            try:
                model = LoadedModel(path)
            except BrokenModelError as error:
                self._rejected[path] = files
                self._states[_number(path)] = ("END", str(error))
                self._metrics.loads.labels("rejected").inc()
                _log.error("%s is rejected: it %s", path, error)
            else:
                self._metrics.loads.labels("loaded").inc()
                return model
        return None


def _number(path: str) -> int:
    return int(os.path.basename(path))


def _files(path: str) -> Files:
    """Return the names, sizes and times of the files of a version, local or at a URL."""
    found = []
    try:
        for folder, _, names in tf.io.gfile.walk(path):
            for name in names:
                # A gs:// listing gives folders a slash at the end.
                status = tf.io.gfile.stat(f"{folder.rstrip('/')}/{name}")
                found.append((name, status.length, status.mtime_nsec))
    except tf.errors.OpError:  # a file that has just been deleted
        return []
    return sorted(found)
