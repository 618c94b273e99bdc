"""A destination of pushed models: what is pushed there, what it serves, its words in an error.

A destination is a subclass of `Destination` and a row of `pipeline/destinations.py`. This module
imports no TFX and no TensorFlow, which take seconds, so that commands can look at a destination
before a run.
"""

from __future__ import annotations

import abc
import json
import pkgutil
from collections.abc import Callable
from typing import NamedTuple

from absl import logging

from core.errors import InputError, cause

SERVED, ROLLED_BACK, DAMAGED = "served", "rolled back", "damaged"
"""States of a pushed model. A server cannot load a damaged one, and serves the one before it."""

_LISTED = "`amazon-reviews models` lists the versions"


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


class Push(NamedTuple):
    """The record of a push.

    Attributes:
      location: what serves the model, such as the folder of its version.
      version: the name of the model, see `PushedModel`.
    """

    location: str
    version: str


class Destination(abc.ABC):
    """Pushed models, one of which is served.

    The constructor of a subclass stores its arguments, and neither reads nor connects. All other
    methods raise what the storage raises: OSError and tensorflow.errors.OpError for files, and
    InputError or RuntimeError for a service. `unusable` converts these errors to a message.

    Attributes:
      location: the name of the destination in messages, such as its folder.
      setting: the setting that errors name, as `section.key`.
      repair: what to do if the served model is damaged, as a clause in the imperative.
    """

    location: str
    setting: str
    repair: str

    @abc.abstractmethod
    def push(self, model: str, uri: str) -> Push:
        """Push a SavedModel, and copy it to the folder `uri` of the artifact.

        A retry of a push whose end was not recorded pushes no second copy.

        Args:
          model: the folder of the SavedModel, or its URL.
          uri: the folder or the URL of the artifact `pushed_model`.

        Raises:
          InputError: the model was rolled back, or a server could not load it.
        """

    @abc.abstractmethod
    def pushed_models(self) -> list[PushedModel]:
        """Return the pushed models, the newest first."""

    @abc.abstractmethod
    def folder(self, name: str) -> str:
        """Return the folder of the pushed model `name`, a SavedModel."""

    @abc.abstractmethod
    def find_name(self, location: str) -> str | None:
        """Return the name of the model that was pushed to `location`, see `Push`.

        Returns:
          None if `location` is not a part of this destination, or does not depend on the model.
        """

    @abc.abstractmethod
    def state(self) -> str | None:
        """Return a text that changes if any pushed model is added, replaced, damaged or removed.

        A command calls this method before a run to find out whether the run would only repeat the
        last one.

        Returns:
          None if the state cannot be read within a moment. Then no run is skipped.

        Raises:
          OSError, InputError: the state cannot be read now. Then no run is skipped either.
        """

    def served(self) -> PushedModel | None:
        """Return the model that is served; None if there is none."""
        return next((model for model in self.pushed_models() if model.state == SERVED), None)

    def served_name(self) -> str | None:
        """Return the name under which servers load the served model; None if there is none.

        After a rollback this is the name of a copy.
        """
        served = self.served()
        return served.name if served else None

    def baseline(self, candidate: str | None) -> PushedModel | None:
        """Return the model that is served and is not the candidate; None if there is none.

        In an unchanged second run the candidate is the served version itself. Compared with itself
        it would pass any threshold. Then it is compared with the newest other version, unless that
        was rolled back.

        A newer version that is damaged is returned, so that its copy fails: the servers that loaded
        it before it was damaged still answer with it.

        Args:
          candidate: the `identity` of the candidate; None for a warm start, which has no candidate.
        """
        models = self.pushed_models()
        if models and models[0].state == DAMAGED:
            return models[0]
        models.sort(key=lambda model: model.state != SERVED)
        for model in models:
            if model.content != candidate and model.state not in (ROLLED_BACK, DAMAGED):
                return model
        return None

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
        if not found:
            problem = "no earlier model was pushed" if name is None else f"no version {name!r}"
            raise InputError(f"{self.location}: {problem}; {_LISTED}")
        if found[0].state == SERVED:
            raise InputError(f"{self.location}: version {name} is served already; {_LISTED}")
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
        raise InputError(f"{self.location}: {'; '.join(problems)}; nothing was changed")

    def check_not_rolled_back(self, content: str) -> None:
        """Check that a model was not rolled back.

        Args:
          content: the `identity` of the model.

        Raises:
          InputError: the model was rolled back.
        """
        for model in self.pushed_models():
            if (model.content, model.state) == (content, ROLLED_BACK):
                name = model.name
                raise InputError(
                    f"the model is version {name} in {self.location}, which was rolled back, so it "
                    f"is not pushed again; `amazon-reviews rollback {name}` serves it again"
                )

    def unusable(self, error: Exception) -> str:
        """Return the message for an error of the storage, in one line."""
        return f"{self.setting}: cannot be read or written: {cause(error)}"

    def unknown_baseline(self, error: Exception) -> str:
        """Return the message for an error after which the baseline is unknown, in one line."""
        return f"{self.setting}: the baseline in {self.location} is unknown: {cause(error)}"

    def damaged_baseline(self, folder: str, reason: Exception) -> str:
        """Return the message for a baseline whose `folder` is damaged, in one line."""
        return f"{folder} is damaged, so no model can be compared with it ({reason}); {self.repair}"

    def no_baseline(self) -> str:
        """Return why a candidate is compared with no model, as a clause."""
        return f"no other model is served from {self.location}"

    @abc.abstractmethod
    def _check_loads(self, model: PushedModel) -> None:
        """Raise InputError with the reason if a server cannot load an earlier model."""

    @abc.abstractmethod
    def _serve_again(self, model: PushedModel) -> None:
        """Serve an earlier model; the one that it replaces is rolled back."""


def make_destination(given: str) -> Destination:
    """Return the destination with the JSON `[dotted name of the class, arguments]`.

    `pipeline.destinations.destination_json` returns this JSON.

    Raises:
      ImportError, AttributeError: there is no such class.
    """
    kind, arguments = json.loads(given)
    destination: Destination = pkgutil.resolve_name(kind)(**arguments)
    return destination
