"""The versions in the serving folder: which one answers, and when another one replaces it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from core.errors import ServerError
from serving.rest.metrics import Metrics
from serving.rest.model import BrokenModelError, LoadedModel
from serving.versions import NoModelError, versions

_log = logging.getLogger(__name__)
_STATES_KEPT = 50

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
        # Path -> `_files` of a rejected version when it was loaded, and at the last poll.
        self._rejected: dict[str, tuple[Files, Files]] = {}

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
            raise ServerError(
                f"no model in {self.folder} can be served: {number} {problem}. Push a model with "
                "`amazon-reviews run`"
            )

    async def watch(self, seconds: float) -> None:
        """Look for a newer version every `seconds`, load it in a thread, and switch to it.

        No error ends it: the next version must be found after any problem with this one.
        """
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="load") as thread:
            while True:
                await asyncio.sleep(seconds)
                try:
                    model = await loop.run_in_executor(thread, self._load_newer)
                except OSError as error:
                    _log.warning("paths.serving: %s cannot be read: %s", self.folder, error)
                    continue
                except Exception:
                    _log.exception("paths.serving: the search in %s failed", self.folder)
                    continue
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
        for number in sorted(self._states)[:-_STATES_KEPT]:
            if number != model.version:
                del self._states[number]
        self._metrics.version.set(model.version)
        _log.info("version %s of %s answers requests now", model.version, self.folder)

    def _load_newer(self) -> LoadedModel | None:
        """Return the newest version that is not broken; None if it is the one that answers."""
        current = getattr(self, "current", None)
        for path in versions(self.folder):
            if current is not None and _number(path) == current.version:
                return None
            if path in self._rejected and not self._is_repaired(path):
                continue
            model = self._try(path)
            if model is not None:
                return model
        return None

    def _is_repaired(self, path: str) -> bool:
        """Return whether the files of a rejected version have changed, but not since the last poll.

        A version that is copied file by file becomes complete after its first load has failed.
        """
        rejected, before = self._rejected[path]
        now = _files(path)
        self._rejected[path] = (rejected, now)
        return now == before != rejected

    def _try(self, path: str) -> LoadedModel | None:
        """Return the model at `path`; None if it is broken, which is logged and remembered."""
        number, found = _number(path), _files(path)
        self._states[number] = ("LOADING", "")
        # A replaced model has cycles of references, and would stay in memory for many versions.
        gc.collect()
        try:
            model = LoadedModel(path)
        except BrokenModelError as error:
            self._states[number] = ("END", str(error))
            self._rejected[path] = (found, found)
            self._metrics.loads.labels("rejected").inc()
            _log.error("%s is rejected: it %s", path, error)
            return None
        self._metrics.loads.labels("loaded").inc()
        return model


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
