"""The pushed models of a pipeline, and the way back to an earlier one."""

from __future__ import annotations

import os
from typing import NamedTuple

from components.evaluator.metrics import Interval, wilson
from components.pusher import pushed_versions, rolled_back
from components.pusher import roll_back as push_back
from components.run_report import tracking
from core.errors import InputError
from pipeline.config import PipelineConfig
from platforms.local.runs import find_runs


class PushedModel(NamedTuple):
    """A pushed model.

    Attributes:
      version: the name of its folder in `paths.serving`.
      accuracy, interval: the accuracy on the test split and its 95 % confidence interval; None if
        another machine has the run.
      run: the id of the run that pushed it; empty if another machine has the run.
      state: `served`, `rolled back` or empty, and the alias in MLflow.
    """

    version: str
    accuracy: float | None
    interval: Interval | None
    run: str
    state: str


def pushed_models(config: PipelineConfig) -> list[PushedModel]:
    """Return the pushed models in `paths.serving`, the newest first.

    Raises:
      InputError: there is none.
    """
    found = pushed_versions(config.paths.serving)
    if not found:
        raise InputError(
            f"paths.serving: no pushed model in {config.paths.serving}; `amazon-reviews run` "
            "pushes one"
        )
    served, undone = found[0].original, rolled_back(found)
    runs = {run.outcome["pushed_to"]: run for run in _runs(config) if run.outcome}
    models = []
    for version in found:
        if version.replaced:  # A copy of an earlier version.
            continue
        outcome, run_id = {}, ""
        if run := runs.get(version.path):
            outcome, run_id = dict(run.outcome or {}), run.id
        accuracy = outcome.get("accuracy")
        tested = outcome.get("lines", {}).get("examples_test", 0)
        interval = wilson(round(accuracy * tested), tested) if tested else None
        state = {served: "served"}.get(version.name, "rolled back" * (version.name in undone))
        models.append(PushedModel(version.name, accuracy, interval, run_id, state))
    return models


def roll_back(config: PipelineConfig, version: str | None) -> list[str]:
    """Serve an earlier version again; return what was done, in lines.

    Raises:
      InputError: there is no such version, or it is served.
    """
    serving = config.paths.serving
    chosen, copy = push_back(serving, version)
    lines = [f"{serving} serves version {chosen.name} again, as version {os.path.basename(copy)}"]
    if uri := config.tracking.mlflow:
        try:
            client = tracking.connect(uri)
            moved = tracking.move_champion(client, config.name, chosen.path)
            lines.append(
                f"MLflow: {tracking.CHAMPION} is version {moved} of {config.name}"
                if moved
                else f"MLflow: no version of {config.name} was pushed to {chosen.path}"
            )
        except Exception as error:  # MLflow raises the errors of many libraries.
            lines.append(
                f"tracking.mlflow: {tracking.CHAMPION} was not moved: {tracking.one_line(error)}"
            )
    return lines


def _runs(config: PipelineConfig) -> list:
    try:
        return find_runs(config)
    except InputError:  # Another machine pushed the models.
        return []
