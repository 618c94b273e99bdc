"""The versions in the serving folder: which one answers, and when another one replaces it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from core.errors import ServerError
from serving.predictor import NoModelError
from serving.rest.metrics import Metrics
from serving.rest.models import BrokenModelError, LoadedModel
from serving.versions import MODEL_FILE, versions

_log = logging.getLogger(__name__)
_STATES_KEPT = 50


@dataclass(frozen=True)
class State:
    """The state of a version, in the terms of TensorFlow Serving's model status."""

    state: str
    error_code: str = "OK"
    error_message: str = ""


class Models:
    """The model that answers requests: the newest of the versions in a folder that are not broken.

    As in TensorFlow Serving, if the newest version is deleted, the previous one answers again.

    Attributes:
      folder: the serving folder.
      current: the model that answers new requests.
    """

    current: LoadedModel

    def __init__(
        self,
        folder: str,
        metrics: Metrics,
        load: Callable[[str], LoadedModel] = LoadedModel,
    ):
        self.folder = folder
        self._metrics = metrics
        self._load = load
        self._states: dict[int, State] = {}
        self._broken: dict[str, float] = {}  # path -> modification time of the rejected file

    def load_first(self) -> None:
        """Load the newest version that is not broken.

        Raises:
          NoModelError: there is no version.
          ServerError: all versions are broken.
        """
        for path in versions(self.folder):
            model = self._try(path)
            if model is not None:
                self._switch(model)
                return
        if not self._states:
            raise NoModelError(self.folder)
        number, state = max(self._states.items())
        raise ServerError(
            f"no model in {self.folder} can be served: {number} {state.error_message}. Push a "
            "model with `amazon-reviews run`"
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

    def states(self) -> Iterator[tuple[int, State]]:
        """Yield the version and the state of each known version, newest first."""
        yield from sorted(self._states.items(), reverse=True)

    def status(self, version: int | None = None) -> list[dict[str, Any]]:
        """Return TensorFlow Serving's `model_version_status` of one version or of all."""
        return [
            {
                "version": str(number),
                "state": state.state,
                "status": {"error_code": state.error_code, "error_message": state.error_message},
            }
            for number, state in self.states()
            if version in (None, number)
        ]

    def _switch(self, model: LoadedModel) -> None:
        """Make `model` answer new requests; the previous model answers the queued requests."""
        before = getattr(self, "current", None)
        self.current = model
        if before is not None:
            self._states[before.version] = State("END")
        self._states[model.version] = State("AVAILABLE")
        for number in sorted(self._states)[:-_STATES_KEPT]:
            if number != model.version:
                del self._states[number]
        self._metrics.version.set(model.version)
        _log.info("version %s of %s answers requests now", model.version, self.folder)

    def _load_newer(self) -> LoadedModel | None:
        """Return the newest version that is not broken; None if it is the one that answers."""
        for path in versions(self.folder):
            if _number(path) == self.current.version:
                return None
            if self._broken.get(path) == _changed(path):
                continue
            model = self._try(path)
            if model is not None:
                return model
        return None

    def _try(self, path: str) -> LoadedModel | None:
        """Return the model at `path`; None if it is broken, which is logged and remembered."""
        number, changed = _number(path), _changed(path)
        self._states[number] = State("LOADING")
        try:
            model = self._load(path)
        except BrokenModelError as error:
            self._states[number] = State("END", "INVALID_ARGUMENT", str(error))
            self._broken[path] = changed
            self._metrics.loads.labels("rejected").inc()
            _log.error("%s is rejected: it %s", path, error)
            return None
        self._metrics.loads.labels("loaded").inc()
        return model


def _number(path: str) -> int:
    return int(os.path.basename(path))


def _changed(path: str) -> float:
    """Return the modification time of the model file, so that a repaired model is loaded again."""
    try:
        return os.stat(f"{path}/{MODEL_FILE}").st_mtime
    except OSError:  # a URL, or a folder that has just been deleted
        return 0.0
