"""The interface of a destination of pushed models: push, list, baseline, rollback, messages.

A destination is a subclass of `Destination` and a row of `pipeline/destinations.py`. This module
imports neither TFX nor TensorFlow, which takes seconds, because commands read the state of a
destination before a run.
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
"""States of a pushed model. A server cannot load a damaged model, and serves the one before it."""

_LISTED = "`amazon-reviews models` lists the versions"


class PushedModel(NamedTuple):
    """A model at a destination.

    Attributes:
      name: the number of its version in a folder, or its id on Vertex AI.
      pushed: the time of the push, in seconds since 1970; None if it is unknown.
      content: the `identity` of the model; empty if its files are incomplete.
      state: SERVED, ROLLED_BACK, DAMAGED or empty.
      copies: the names of further versions with the same content, the oldest first. A rollback
        creates such a copy. Servers report the name of the copy that they loaded.
    """

    name: str
    pushed: float | None
    content: str
    state: str = ""
    copies: tuple[str, ...] = ()


def baseline_name(name: str) -> str:
    """Return the name of a pushed model in messages about a baseline, such as `version 1764000000`.

    Args:
      name: `PushedModel.name` of the model.
    """
    return f"version {name}"


class Push(NamedTuple):
    """The record of a push.

    Attributes:
      location: the folder of the version, or the resource name of the endpoint.
      version: `PushedModel.name` of the model.
    """

    location: str
    version: str


class Destination(abc.ABC):
    """A store of pushed models, one of which is served.

    The constructor of a subclass only stores its arguments; it opens no file and no connection. All
    other methods can raise the errors of the storage: OSError and tensorflow.errors.OpError for
    files, InputError and RuntimeError for a service. `unusable` returns the message of such an
    error.

    Attributes:
      location: the name of the destination in messages, such as its folder.
      setting: the setting that errors name, as `section.key`.
      repair: the remedy for a damaged model, as a clause in the imperative.
    """

    location: str
    setting: str
    repair: str

    @abc.abstractmethod
    def push(self, model: str, uri: str, reference: str | None = None) -> Push:
        """Push a SavedModel, and copy it to the folder `uri` of the artifact.

        The retry of an interrupted push does not push a second copy.

        Args:
          model: the folder of the SavedModel, or its URL, whose files were checked.
          uri: the folder or the URL of the artifact `pushed_model`.
          reference: the file `serving.drift.reference.REFERENCE_FILE` of the evaluation, which a
            version in a folder keeps for later comparisons. None: there is none.

        Raises:
          InputError: the model was rolled back.
        """

    @abc.abstractmethod
    def pushed_models(self) -> list[PushedModel]:
        """Return the pushed models, the newest first."""

    @abc.abstractmethod
    def folder(self, name: str) -> str:
        """Return the path or the URL of a pushed SavedModel.

        Args:
          name: `PushedModel.name` of the model.
        """

    @abc.abstractmethod
    def find_name(self, location: str) -> str | None:
        """Return the name of the model that was pushed to a location.

        Args:
          location: `Push.location` of an earlier push, to any destination.

        Returns:
          `PushedModel.name`; None if the location belongs to another destination, or if all models
          of this destination have the same location.
        """

    @abc.abstractmethod
    def state(self) -> str | None:
        """Return a text that changes if any pushed model is added, replaced, damaged or removed.

        The local platform skips a run that would only repeat the last one. Therefore it compares
        the state before the run with the state after the last run.

        Returns:
          None if requests to a service would be necessary. Then no run is skipped.

        Raises:
          OSError, InputError: the state cannot be read now. Then no run is skipped either.
        """

    def served(self) -> PushedModel | None:
        """Return the served model; None if there is none."""
        return next((model for model in self.pushed_models() if model.state == SERVED), None)

    def served_name(self) -> str | None:
        """Return the name of the version that servers load; None if there is none.

        After a rollback it is one of `PushedModel.copies`.
        """
        served = self.served()
        return served.name if served else None

    def baseline(self, candidate: str | None) -> PushedModel | None:
        """Return the model that a candidate is compared with; None if there is none.

        The baseline is the served model. In an unchanged second run the candidate is the served
        model itself, and would pass any threshold in a comparison with itself. Then the baseline is
        the newest other model that is neither rolled back nor damaged.

        If the newest model is damaged, it is returned, so that copying it raises an error: servers
        that loaded the model before the damage still serve it.

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
        """Serve an earlier model again, and return it.

        Each model is loaded as a check before it is served. A model that cannot be loaded is
        skipped.

        Args:
          name: the name of the model or of one of its copies. None: the newest model before the
            served one that can be loaded. Models that were rolled back are tried last.
          report: a function that is called with a line for each skipped model.

        Raises:
          InputError: there is no such model, it is served already, or it cannot be loaded.
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
                report(f"{problem}; it is skipped")
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
        """Return the message for an error of the storage, in one line.

        Args:
          error: an error that another method raised.
        """
        return f"{self.setting}: cannot be read or written: {cause(error)}"

    def unknown_baseline(self, error: Exception) -> str:
        """Return the message for an unknown baseline, in one line.

        Args:
          error: the error of the search for the baseline.
        """
        return f"{self.setting}: the baseline in {self.location} is unknown: {cause(error)}"

    def damaged_baseline(self, folder: str, reason: Exception) -> str:
        """Return the message for a damaged baseline, in one line.

        Args:
          folder: the folder of the baseline.
          reason: the error that reading it raised.
        """
        return f"{folder} is damaged, so no model can be compared with it ({reason}); {self.repair}"

    def no_baseline(self) -> str:
        """Return the reason why there is no baseline, as a clause."""
        return f"no other model is served from {self.location}"

    @abc.abstractmethod
    def _check_loads(self, model: PushedModel) -> None:
        """Raise InputError with the reason if a server cannot load an earlier model."""

    @abc.abstractmethod
    def _serve_again(self, model: PushedModel) -> None:
        """Serve an earlier model. The model that is served so far becomes ROLLED_BACK."""


def make_destination(given: str) -> Destination:
    """Return the destination that a JSON describes.

    Args:
      given: the JSON `[dotted name of the class, keyword arguments]`, which
        `pipeline.destinations.destination_json` returns.

    Raises:
      ImportError, AttributeError: there is no such class.
    """
    kind, arguments = json.loads(given)
    destination: Destination = pkgutil.resolve_name(kind)(**arguments)
    return destination
