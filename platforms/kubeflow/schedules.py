"""Recurring runs on Kubeflow Pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.errors import InputError
from pipeline.config import PipelineConfig
from platforms.follow import (
    FAILURE_STATES,
    SUCCESS_STATES,
    NoResponse,
    SubmitError,
    possibly_submitted,
)
from platforms.kubeflow.client import connect, pipeline_root, readable_errors, silent_kfp
from platforms.package import Package
from platforms.scheduled import Scheduled

_PAGE = 100
_ENDS = SUCCESS_STATES + FAILURE_STATES


def create(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str, cron: str
) -> None:
    """Create a recurring run; see `platforms.schedules.create`.

    Each run reads the input files, without the cache: they may change between the runs.
    """
    settings = config.kubeflow
    with silent_kfp(), readable_errors(config):
        client, namespace = connect(config)
        experiment = client.create_experiment(settings.experiment, namespace=namespace)
    try:
        with silent_kfp(), readable_errors(config):
            client.create_recurring_run(
                experiment.experiment_id,
                name,
                # Kubeflow has six fields: the additional first field is the second of the minute.
                cron_expression=f"0 {cron}",
                # A run that is late is not repeated for each time that it missed.
                no_catchup=True,
                max_concurrency=1,
                params=values,
                pipeline_package_path=str(package.file),
                pipeline_root=pipeline_root(config),
                enable_caching=None if config.cache else False,
                service_account=settings.service_account,
            )
    except NoResponse as error:
        raise possibly_submitted(error, name, settings.endpoint or "") from None


def find(config: PipelineConfig) -> list[Scheduled]:
    """Return the recurring runs of the experiment."""
    found: list[Scheduled] = []
    with silent_kfp(), readable_errors(config):
        client, namespace = connect(config)
        experiment = client.create_experiment(config.kubeflow.experiment, namespace=namespace)
        page = ""
        while True:
            answer = client.list_recurring_runs(page, _PAGE, experiment_id=experiment.experiment_id)
            found += [_scheduled(each) for each in answer.recurring_runs or []]
            page = answer.next_page_token
            if not page:
                return found


def delete(config: PipelineConfig, name: str) -> None:
    """Disable the recurring runs of a name, and delete them if none of their runs is in progress.

    Kubeflow deletes the Workflow of a run together with its recurring run, and the API would then
    show the run as running for ever.

    Raises:
      SubmitError: a run is in progress.
    """
    ids = [each.id for each in find(config) if each.name == name]
    if not ids:
        raise InputError(f"no recurring run {name} in experiment {config.kubeflow.experiment}")
    with silent_kfp(), readable_errors(config):
        client, namespace = connect(config)
        experiment = client.create_experiment(config.kubeflow.experiment, namespace=namespace)
        for each in ids:
            client.disable_recurring_run(each)
        for run in _all_runs(client, experiment.experiment_id):
            if run.recurring_run_id in ids and run.state not in _ENDS:
                raise SubmitError(
                    f"{name} is disabled, but not deleted, because that would end its run "
                    f"{run.display_name} ({run.run_id}); repeat the command after the end of the "
                    "run, or terminate the run first"
                )
        for each in ids:
            client.delete_recurring_run(each)


def _all_runs(client: Any, experiment_id: str) -> Iterator[Any]:
    page = ""
    while True:
        answer = client.list_runs(page, _PAGE, experiment_id=experiment_id)
        yield from answer.runs or []
        page = answer.next_page_token
        if not page:
            return


def _scheduled(run: Any) -> Scheduled:
    cron = run.trigger.cron_schedule.cron if run.trigger and run.trigger.cron_schedule else ""
    return Scheduled(
        id=run.recurring_run_id,
        name=run.display_name,
        cron=cron.removeprefix("0 "),
        state=(run.status or "").lower(),
    )
