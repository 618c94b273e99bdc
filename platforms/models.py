"""The pushed models of a pipeline, and the way back to an earlier one, for each destination."""

from __future__ import annotations

import os
from typing import NamedTuple

from components.evaluator.metrics import Interval, wilson
from components.pusher import pushed_versions, rolled_back
from components.pusher import roll_back as push_back
from components.run_report import tracking
from components.run_report.history import Run
from core.errors import ConfigError, InputError, cause
from pipeline.config import PipelineConfig
from platforms.local.runs import find_runs


class PushedModel(NamedTuple):
    """A pushed model.

    Attributes:
      version: the name of its folder in `paths.serving`, or its id on Vertex AI.
      pushed: seconds since 1970.
      state: `served`, `rolled back` or empty.
      run: the id of the run that pushed it; empty if another machine has the run.
      accuracy, interval: the accuracy on the test split and its 95 % confidence interval; None if
        another machine has the run.
      alias: the alias in MLflow; empty without one.
    """

    version: str
    pushed: float
    state: str
    run: str = ""
    accuracy: float | None = None
    interval: Interval | None = None
    alias: str = ""


def pushed_models(config: PipelineConfig) -> list[PushedModel]:
    """Return the pushed models, the newest first.

    Raises:
      InputError: there is none.
      ConfigError: MLflow does not respond.
    """
    models = _pushed_models(config)
    if not models:
        place = "Vertex AI" if config.push.destination == "vertex" else config.paths.serving
        raise InputError(f"{place}: no pushed model; `amazon-reviews run` pushes one")
    if config.tracking.mlflow is None:
        return models
    try:
        found = tracking.champion(tracking.connect(config.tracking.mlflow), config.name)
    except Exception as error:  # MLflow raises the errors of many libraries.
        raise ConfigError(
            f"tracking.mlflow: {cause(error)}; list the models without their aliases "
            "by --set tracking.mlflow=null"
        ) from None
    champion = found and found.tags.get(tracking.PUSHED_TAG)
    return [
        model._replace(alias=tracking.CHAMPION) if model.version == champion else model
        for model in models
    ]


def _pushed_models(config: PipelineConfig) -> list[PushedModel]:
    if config.push.destination == "vertex":
        # Google's clients take seconds to import.
        from platforms.vertex import platform, pusher

        endpoint = pusher.Endpoint(platform.endpoint_settings(config))
        return [PushedModel(*model) for model in endpoint.pushed_models()]
    found = pushed_versions(config.paths.serving)
    served, undone = found[0].original if found else "", rolled_back(found)
    runs = {run.outcome["pushed_to"]: run for run in _runs(config) if run.outcome}
    models = []
    for version in found:
        if version.replaced:  # A copy of an earlier version.
            continue
        state = "served" if version.name == served else "rolled back" * (version.name in undone)
        model = PushedModel(version.name, int(version.name), state)
        if run := runs.get(version.path):
            outcome = run.outcome or {}
            accuracy, tested = outcome["accuracy"], outcome["lines"]["examples_test"]
            interval = wilson(round(accuracy * tested), tested)
            model = model._replace(run=run.id, accuracy=accuracy, interval=interval)
        models.append(model)
    return models


def roll_back(config: PipelineConfig, version: str | None) -> list[str]:
    """Serve an earlier model again; return what was done, in lines.

    Raises:
      InputError: there is no such version, or it is served.
    """
    if config.push.destination == "vertex":
        from platforms.vertex import platform, pusher

        endpoint = pusher.Endpoint(platform.endpoint_settings(config))
        name = endpoint.roll_back(version)
        lines = [f"the endpoint {endpoint.name} serves the model {name} again"]
    else:
        serving = config.paths.serving
        chosen, copy = push_back(serving, version)
        name = chosen.name
        lines = [f"{serving} serves version {name} again, as version {os.path.basename(copy)}"]
    if config.tracking.mlflow:
        lines.append(_move_champion(config, name))
    return lines


def _move_champion(config: PipelineConfig, name: str) -> str:
    alias = tracking.CHAMPION
    try:
        client = tracking.connect(config.tracking.mlflow or "")
        moved = tracking.move_champion(client, config.name, name)
    except Exception as error:  # MLflow raises the errors of many libraries.
        return f"tracking.mlflow: {alias} was not moved: {cause(error)}"
    if moved is None:
        return f"MLflow: no version of {config.name} is that of {name}, so {alias} was not moved"
    return f"MLflow: {alias} is version {moved} of {config.name}"


def _runs(config: PipelineConfig) -> list[Run]:
    try:
        return find_runs(config)
    except InputError:  # Another machine pushed the models.
        return []
