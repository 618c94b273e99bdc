"""VersionPusher: pushes a blessed model to a destination, and serves an earlier one again.

A folder gets a copy of the model as a new version, which is newer than all others.
A rollback pushes a copy of an earlier version. All servers load the newest version, so a rollback
works for each of them as any push does.

`@component` reads the annotations, which `from __future__ import annotations` would make strings.
"""

import abc
import json
import os
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
from absl import logging
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import standard_artifacts
from tfx.utils import import_utils, io_utils, path_utils

from components.properties import BLESSED_PROPERTY, PUSHED, PUSHED_DESTINATION
from components.saved_models import check_files, check_loads, copy_folder, copy_model
from core.errors import InputError
from serving.identity import identity
from serving.versions import is_complete, next_version, versions

SERVED, ROLLED_BACK, DAMAGED = "served", "rolled back", "damaged"
"""States of a pushed model. A server cannot load a damaged one, and serves the one before it."""
_ROLLBACK = "assets.extra/rollback.txt"
"""A file of each version that a rollback pushed. SavedModels have such a folder for files that
TensorFlow does not read."""


class PushedModel(NamedTuple):
    """A model at a destination.

    Attributes:
      name: the number of its version in a folder, or its id on Vertex AI.
      pushed: seconds since 1970.
      content: the `identity` of the model; empty if its files are incomplete.
      state: SERVED, ROLLED_BACK, DAMAGED or empty.
      copies: the names of further versions with the same content, the oldest first. A rollback
        pushes such a copy, and a server names the copy that it loaded.
    """

    name: str
    pushed: float
    content: str
    state: str = ""
    copies: tuple[str, ...] = ()


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

    def roll_back(
        self, name: str | None = None, report: Callable[[str], None] = logging.warning
    ) -> PushedModel:
        """Serve an earlier model again, by default the one before the served one; return it.

        A model is loaded first. By default, models that were rolled back are chosen last, and a
        model that cannot be loaded is passed over, which is reported in a line.

        Args:
          name: the name of a model or of one of its copies.
          report: gets a line for each model that is passed over.

        Raises:
          InputError: there is no such model, or it is served, or it cannot be loaded.
        """
        models = self.pushed_models()
        if name is None:
            states = [model.state for model in models]
            found = models[states.index(SERVED) + 1 :] if SERVED in states else []
            found.sort(key=lambda model: model.state == ROLLED_BACK)
        else:
            found = [model for model in models if name in (model.name, *model.copies)]
        listed = "`amazon-reviews models` lists the versions"
        if not found:
            problem = "no earlier model was pushed" if name is None else f"no version {name!r}"
            raise InputError(f"{self.place}: {problem}; {listed}")
        if found[0].state == SERVED:
            raise InputError(f"{self.place}: version {name} is served already; {listed}")
        problems = []
        for model in found:
            try:
                self._check_loads(model)
            except InputError as error:
                problems.append(f"version {model.name} cannot be loaded: {error}")
                continue
            for problem in problems:
                report(f"{problem}; it is passed over")
            self._serve_again(model)
            return model
        raise InputError(f"{self.place}: {'; '.join(problems)}; nothing was changed")

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
    def _check_loads(self, model: PushedModel) -> None:
        """Raise InputError with the reason if a server cannot load an earlier model."""

    @abc.abstractmethod
    def _serve_again(self, model: PushedModel) -> None:
        """Serve an earlier model; the one that it replaces is rolled back."""


class ServingFolder(Destination):
    """The versions in a folder. The newest one that a server can load is the served one."""

    def __init__(self, serving: str):
        self.place = serving

    def push(self, model: str, uri: str) -> tuple[str, str]:
        check_files(model)
        version, content = self.newest(), identity(model)
        if version is None or identity(version) != content:
            self.check_not_rolled_back(content)
            version = self._copy(model)
        copy_folder(model, uri)
        return version, os.path.basename(version)

    def newest(self) -> str | None:
        """Return the path of the newest version that a server can load; None if there is none."""
        for path in versions(self.place):
            try:
                check_files(path)
            except InputError as error:
                logging.warning("%s is damaged, and is not served: %s", path, error)
            else:
                return path
        return None

    def pushed_models(self) -> list[PushedModel]:
        newest = self.newest()
        served = identity(newest) if newest else ""
        models: dict[str, PushedModel] = {}
        names: dict[str, list[str]] = {}
        undone: set[str] = set()
        damaged: set[str] = set()
        content = ""
        for path in reversed(list(versions(self.place))):
            name = os.path.basename(path)
            replaced = content
            # Of the versions before the newest sound one, only the names of the files are read.
            is_before = newest is not None and int(name) <= int(os.path.basename(newest))
            if not is_before or not is_complete(path):
                content = f"{DAMAGED} {name}"
                damaged.add(content)
            else:
                content = identity(path)
            if fileio.exists(os.path.join(path, _ROLLBACK)):
                undone.add(replaced)
            else:  # A run that returns to earlier settings pushes an earlier model again.
                models.pop(content, None)
            undone.discard(content)
            models.setdefault(content, PushedModel(name, int(name), content))
            names.setdefault(content, []).append(name)
        states = {
            **dict.fromkeys(undone, ROLLED_BACK),
            **dict.fromkeys(damaged, DAMAGED),
            served: SERVED,
        }
        found = [
            model._replace(
                content="" if model.content in damaged else model.content,
                state=states.get(model.content, ""),
                copies=tuple(name for name in names[model.content] if name != model.name),
            )
            for model in models.values()
        ]
        return found[::-1]

    def folder(self, name: str) -> str:
        return os.path.join(self.place, name)

    def _check_loads(self, model: PushedModel) -> None:
        check_loads(self.folder(model.name))

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
