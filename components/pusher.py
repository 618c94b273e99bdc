"""VersionPusher: pushes a blessed model to a destination, and serves an earlier one again.

A folder gets a copy of the model as a new version, which is newer than all others.
A rollback pushes a copy of an earlier version. All servers load the newest version, so a rollback
works for each of them as any push does.
"""

from __future__ import annotations

import abc
import hashlib
import json
import os
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging
from tfx import types
from tfx.components import Pusher
from tfx.components.pusher import executor as tfx_executor
from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio
from tfx.types import BaseChannel, standard_component_specs
from tfx.utils import import_utils, io_utils, json_utils

from core.errors import InputError
from serving.versions import MODEL_FILE, next_version, versions

DESTINATION_KEY = "destination"
"""Key in `custom_config`; the value is the JSON of `make_destination`."""
SERVED, ROLLED_BACK = "served", "rolled back"
"""States of a pushed model."""
_ROLLBACK = "assets.extra/rollback.txt"
"""A file of each version that a rollback pushed. SavedModels have such a folder for files that
TensorFlow does not read."""
_FINGERPRINT = "fingerprint.pb"
"""A file with hashes of graph and weights, which TensorFlow writes to every SavedModel."""


def identity(model: str) -> str:
    """Return 16 hex digits, the same for each copy of a SavedModel, others for another model."""
    paths = [os.path.join(model, _FINGERPRINT)]
    if not fileio.exists(paths[0]):  # A TensorFlow older than 2.12 saved the model.
        # The index contains the checksums of all weights.
        index = os.path.join(model, "variables", "variables.index")
        paths = [os.path.join(model, MODEL_FILE), *([index] if fileio.exists(index) else [])]
    digest = hashlib.sha256()
    for path in paths:
        with fileio.open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


def copy_model(source: str, target: str) -> None:
    """Copy a SavedModel to the folder `target`.

    Servers take the model file as the sign of a complete model. So this file is written under
    another name, and gets its name when all files are complete.
    """
    source, target = source.rstrip("/"), target.rstrip("/")
    for folder, _, names in fileio.walk(source):
        copy = f"{target}{folder[len(source) :]}"
        fileio.makedirs(copy)
        for name in names:
            file = os.path.join(folder, name)
            if file != f"{source}/{MODEL_FILE}":
                fileio.copy(file, os.path.join(copy, name), overwrite=True)
    partial = f"{target}/{MODEL_FILE}.partial"
    fileio.copy(f"{source}/{MODEL_FILE}", partial, overwrite=True)
    fileio.rename(partial, f"{target}/{MODEL_FILE}", overwrite=True)


class PushedModel(NamedTuple):
    """A model at a destination.

    Attributes:
      name: the number of its version in a folder, or its id on Vertex AI.
      pushed: seconds since 1970.
      content: the `identity` of the model.
      state: SERVED, ROLLED_BACK or empty.
    """

    name: str
    pushed: float
    content: str
    state: str = ""


class Destination(abc.ABC):
    """Pushed models, one of which is served."""

    place: str
    """The name of the destination in messages."""

    @abc.abstractmethod
    def push(self, model: str, uri: str) -> tuple[str, str]:
        """Push a SavedModel, and copy it to the folder `uri` of the artifact.

        A retry of a push whose end was not recorded pushes no second copy.

        Returns:
          What serves the model, such as its folder, and the name of its version.

        Raises:
          InputError: the model was rolled back.
        """

    @abc.abstractmethod
    def pushed_models(self) -> list[PushedModel]:
        """Return the pushed models, the newest first."""

    @abc.abstractmethod
    def folder(self, name: str) -> str:
        """Return the folder of a pushed model, a SavedModel."""

    def served(self) -> PushedModel | None:
        """Return the model that is served."""
        return next((model for model in self.pushed_models() if model.state == SERVED), None)

    def roll_back(self, name: str | None = None) -> PushedModel:
        """Serve an earlier model again; return it.

        Args:
          name: the model; None: the one that was pushed before the served one. Models that were
            rolled back are chosen last.

        Raises:
          InputError: there is no such model, or it is served.
        """
        models = self.pushed_models()
        states = [model.state for model in models]
        earlier = models[states.index(SERVED) + 1 :] if SERVED in states else []
        earlier.sort(key=lambda model: model.state == ROLLED_BACK)
        found = [model for model in models if model.name == name] if name else earlier
        if not found:
            problem = f"no version {name}" if name else "no model was pushed before the served one"
        elif found[0].state == SERVED:
            problem = f"version {name} is served already"
        else:
            self._serve_again(found[0])
            return found[0]
        raise InputError(f"{self.place}: {problem}; `amazon-reviews models` lists the versions")

    def check_not_rolled_back(self, content: str) -> None:
        """Raise InputError if the model with this `identity` was rolled back."""
        for model in self.pushed_models():
            if (model.content, model.state) == (content, ROLLED_BACK):
                name = model.name
                raise InputError(
                    f"the model is version {name} in {self.place}, which was rolled back, so it is "
                    f"not pushed again; `amazon-reviews rollback {name}` serves it again"
                )

    @abc.abstractmethod
    def _serve_again(self, model: PushedModel) -> None:
        """Serve an earlier model; the one that it replaces is rolled back."""


class ServingFolder(Destination):
    """The versions in a folder. The newest version is the served one."""

    def __init__(self, serving: str):
        self.place = serving

    def push(self, model: str, uri: str) -> tuple[str, str]:
        version, content = next(versions(self.place), None), identity(model)
        if version is None or identity(version) != content:
            self.check_not_rolled_back(content)
            version = self._copy(model)
        io_utils.copy_dir(model, uri)
        return version, os.path.basename(version)

    def pushed_models(self) -> list[PushedModel]:
        models: dict[str, PushedModel] = {}
        undone: set[str] = set()
        served = ""
        for path in reversed(list(versions(self.place))):
            replaced, served = served, identity(path)
            if fileio.exists(os.path.join(path, _ROLLBACK)):
                undone.add(replaced)
            else:  # A run that returns to earlier settings pushes an earlier model again.
                models.pop(served, None)
            undone.discard(served)
            name = os.path.basename(path)
            models.setdefault(served, PushedModel(name, int(name), served))
        states = {**dict.fromkeys(undone, ROLLED_BACK), served: SERVED}
        found = [model._replace(state=states.get(model.content, "")) for model in models.values()]
        return found[::-1]

    def folder(self, name: str) -> str:
        return os.path.join(self.place, name)

    def _serve_again(self, model: PushedModel) -> None:
        self._copy(self.folder(model.name), rolls_back=True)

    def _copy(self, model: str, *, rolls_back: bool = False) -> str:
        """Copy a model to a new version; return its folder."""
        fileio.makedirs(self.place)
        while True:
            version = f"{self.place.rstrip('/')}/{next_version(self.place)}"
            try:
                tf.io.gfile.mkdir(version)
            except tf.errors.AlreadyExistsError:  # Another run has just pushed a model.
                continue
            if rolls_back:
                text = f"a copy of version {os.path.basename(model)}\n"
                io_utils.write_string_file(os.path.join(version, _ROLLBACK), text)
            copy_model(model, version)
            return version


def make_destination(given: str) -> Destination:
    """Return the destination with the JSON `[dotted name of the class, arguments]`."""
    kind, arguments = json.loads(given)
    destination: Destination = import_utils.import_class_by_path(kind)(**arguments)
    return destination


class Executor(tfx_executor.Executor):
    """Pushes a model that has both blessings to the destination."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        self._log_startup(input_dict, output_dict, exec_properties)
        [pushed] = output_dict[standard_component_specs.PUSHED_MODEL_KEY]
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        config = json_utils.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        destination = make_destination(config[DESTINATION_KEY])
        place, version = destination.push(self.GetModelPath(input_dict), pushed.uri)
        self._MarkPushed(pushed, pushed_destination=place, pushed_version=version)
        logging.info("Pushed to %s: version %s", place, version)

    def CheckBlessing(self, input_dict: dict[str, list[types.Artifact]]) -> bool:
        # TFX ignores a missing blessing.
        keys = (
            standard_component_specs.MODEL_BLESSING_KEY,
            standard_component_specs.INFRA_BLESSING_KEY,
        )
        return all(input_dict.get(key) for key in keys) and bool(super().CheckBlessing(input_dict))


class VersionPusher(Pusher):
    """Pushes a model that has both blessings to the destination with the JSON `destination`.

    TFX's own Pusher names a version by the clock alone. After a change of the clock, an older model
    would stay the newest version, and in the same second the Pusher would copy nothing.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        destination: str,
    ):
        super().__init__(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            custom_config={DESTINATION_KEY: destination},
        )
