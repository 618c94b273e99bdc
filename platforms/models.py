"""The list of the pushed models; imports neither TFX nor TensorFlow, whose import takes seconds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from components.destination import Destination, PushedModel, make_destination
from components.run_report.history import Run
from core.errors import ConfigError, InputError, storage_errors
from pipeline.config import PipelineConfig
from pipeline.destinations import check_mounted, destination_json
from platforms.local.runs import all_runs


def list_models(config: PipelineConfig) -> list[tuple[PushedModel, Run | None]]:
    """Return the pushed models, the newest first, each with the run that pushed it.

    Returns:
      Pairs of a model and its run; None in place of a run that `paths.metadata` does not contain.

    Raises:
      InputError: there is no pushed model, a service refuses a setting of the destination, or the
        recorded outcome of a run cannot be read.
      ConfigError: the destination cannot be read, or `paths.metadata` cannot be opened.
      RuntimeError: a service does not respond.
    """
    with opened_destination(config) as destination:
        models = destination.pushed_models()
    if not models:
        raise InputError(
            f"{destination.location}: no pushed model; `amazon-reviews run` with the same settings "
            "pushes one. If the models are elsewhere, pass the --config of their runs"
        )
    runs = {
        destination.find_name(run.outcome.pushed_to): run for run in all_runs(config) if run.outcome
    }
    return [(model, runs.get(model.name)) for model in models]


@contextlib.contextmanager
def opened_destination(config: PipelineConfig) -> Iterator[Destination]:
    """Yield the destination of the push, and convert its errors within the context.

    Raises:
      ConfigError: the destination cannot be read or written, or is on a volume that this machine
        does not mount.
    """
    check_mounted(config)
    destination = make_destination(destination_json(config))
    try:
        yield destination
    except storage_errors() as error:
        raise ConfigError(destination.unusable(error)) from None
