"""The rollback to an earlier model, and the runs and the alias that MLflow has not received."""

from __future__ import annotations

from collections.abc import Iterator

from components.destination import PushedModel
from components.run_report import mlflow_run, unsent
from components.run_report.mlflow_connection import connected
from core.errors import ConfigError, InputError, ServerError, UserError
from pipeline.config import PipelineConfig
from pipeline.pipeline import make_tracking
from platforms.models import opened_destination


def roll_back(config: PipelineConfig, name: str | None) -> Iterator[str]:
    """Serve an earlier model again; yield a line for each thing that was done.

    Args:
      config: the settings.
      name: the version of the model or of a copy of it; None: the newest version before the served
        one that can be loaded.

    Raises:
      InputError: there is no such model, the model is served already or cannot be loaded, or a
        service refuses a setting of the destination.
      ConfigError: the destination cannot be read or written.
      RuntimeError: a service does not respond, or failed to deploy the model.
    """
    passed_over: list[str] = []
    with opened_destination(config) as destination:
        try:
            model = destination.roll_back(name, passed_over.append)
        except InputError:
            # A killed rollback may have served the model without moving the alias.
            served = destination.served()
            if served and name in (served.name, *served.copies):
                yield from _move_champion(config, served)
            raise
    yield from passed_over
    yield f"{destination.location} serves version {model.name} again"
    yield from _move_champion(config, model)


def send_unsent(config: PipelineConfig) -> Iterator[str]:
    """Send the runs that MLflow did not receive; yield a line for each.

    At the end the alias `mlflow_run.CHAMPION` is moved to the served model.

    Raises:
      ConfigError: `tracking.mlflow` is not set, MLflow's client is not installed, the destination
        cannot be read, or the folder of the runs cannot be read or locked.
      InputError: a service refuses a setting of the destination.
      RuntimeError: a service does not respond.
      ServerError: the server does not respond.
      UserError: some runs could not be sent.
    """
    sent_to = make_tracking(config, "local")
    if sent_to is None:
        raise ConfigError("tracking.mlflow: not set; set the address of a tracking server")
    with opened_destination(config) as destination:
        served = destination.served()
    with connected(sent_to.uri) as client:
        failed = 0
        for run_id, problem in unsent.send_unsent(client, sent_to.unsent):
            yield f"not sent: {problem}" if problem else f"sent {run_id} to {sent_to.uri}"
            failed += bool(problem)
        if served:
            mlflow_run.move_champion(client, config.name, served.content)
    if failed:
        raise UserError(f"{failed} {'run was' if failed == 1 else 'runs were'} not sent, see above")


def _move_champion(config: PipelineConfig, served: PushedModel) -> Iterator[str]:
    """Move the alias to the served model, if runs are sent to MLflow; yield a line about it.

    Args:
      config: the settings.
      served: the served model.
    """
    if not config.tracking.mlflow:
        return
    alias = mlflow_run.CHAMPION
    try:
        with connected(config.tracking.mlflow) as client:
            moved = mlflow_run.move_champion(client, config.name, served.content)
    except ServerError as error:
        yield f"{error}; `amazon-reviews runs --send` moves the alias {alias}"
    else:
        yield f"MLflow: {alias} is {moved} of {config.name}"
