"""VersionPusher: pushes a blessed model to a destination, and serves an earlier one again.

A folder gets a copy of the model as a new version, which is newer than all others.
A rollback pushes a copy of an earlier version. All servers load the newest version, so a rollback
works for each of them as any push does.

`@component` reads the annotations, which `from __future__ import annotations` would make strings.
"""

import abc
import json
import os
from typing import NamedTuple

import tensorflow as tf
from absl import logging
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import standard_artifacts
from tfx.utils import import_utils, io_utils, path_utils

from components.properties import BLESSED_PROPERTY, PUSHED, PUSHED_DESTINATION
from core.errors import InputError
from serving.identity import identity
from serving.versions import MODEL_FILE, next_version, versions

SERVED, ROLLED_BACK = "served", "rolled back"
"""States of a pushed model."""
_ROLLBACK = "assets.extra/rollback.txt"
"""A file of each version that a rollback pushed. SavedModels have such a folder for files that
TensorFlow does not read."""


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
        """Serve an earlier model again, by default the one before the served one; return it.

        Models that were rolled back are chosen last.

        Raises:
          InputError: there is no such model, or it is served.
        """
        models = self.pushed_models()
        states = [model.state for model in models]
        earlier = models[states.index(SERVED) + 1 :] if SERVED in states else []
        earlier.sort(key=lambda model: model.state == ROLLED_BACK)
        found = earlier if name is None else [model for model in models if model.name == name]
        if not found:
            problem = "no earlier model was pushed" if name is None else f"no version {name!r}"
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


@component
def VersionPusher(
    model: InputArtifact[standard_artifacts.Model],
    model_blessing: InputArtifact[standard_artifacts.ModelBlessing],
    infra_blessing: InputArtifact[standard_artifacts.InfraBlessing],
    pushed_model: OutputArtifact[standard_artifacts.PushedModel],
    destination: Parameter[str],
) -> None:
    """Pushes a model that has both blessings to the destination with the JSON `destination`.

    TFX's own Pusher names a version by the clock alone. After a change of the clock, an older model
    would stay the newest version, and in the same second the Pusher would copy nothing.
    """
    blessings = (model_blessing, infra_blessing)
    if not all(blessing.get_int_custom_property(BLESSED_PROPERTY) for blessing in blessings):
        logging.info("The model lacks a blessing, and is not pushed")
        return
    source = path_utils.serving_model_path(model.uri)
    place, version = make_destination(destination).push(source, pushed_model.uri)
    # The properties that TFX's own Pusher sets.
    pushed_model.set_int_custom_property(PUSHED, 1)
    pushed_model.set_string_custom_property(PUSHED_DESTINATION, place)
    pushed_model.set_string_custom_property("pushed_version", version)
    logging.info("Pushed to %s: version %s", place, version)
