"""The tracking of runs: a run is sent to MLflow at its end, or later if the server was unavailable.

A run is sent from the files that the report describes. Therefore a tracking server that does not
respond delays a run by only one timeout, and `amazon-reviews runs --send` can send the run later.
"""

from __future__ import annotations

import json
import os
import platform
import re
from typing import NamedTuple

import tensorflow as tf
from absl import logging
from tfx.utils import path_utils

from components.properties import TRACKING
from components.run_report import summary
from components.run_report.content import Content
from components.run_report.history import Run
from components.run_report.mlflow_connection import connected
from components.run_report.mlflow_run import (
    NOTE_TAG,
    RESULT_TAG,
    VERDICT_TAG,
    Record,
    move_champion,
    send,
)
from components.run_report.unsent import keep
from components.run_report.verdict import judge
from core.errors import InputError, UserError
from serving.identity import identity

PLATFORM, COMMIT = "platform", "mlflow.source.git.commit"
"""Tags of a run: `local`, `kubeflow` or `vertex`, and the commit of its code."""
_OPEN_RUN = "MLFLOW_RUN_ID"
"""The environment variable with the id of the run that the platform has opened in MLflow. Kubeflow
Pipelines 2.17 sets it."""


class TrackingServer(NamedTuple):
    """The tracking server of a run.

    Attributes:
      uri: the setting `tracking.mlflow`.
      unsent: the folder for the runs that could not be sent, local or remote.
      name: the name of the pipeline, which is also that of the experiment and of the registered
        model.
      tags: the tags PLATFORM and COMMIT of the run.
    """

    uri: str
    unsent: str
    name: str
    tags: dict[str, str]

    def to_json(self) -> str:
        """Return the value of the environment variable TRACKING, see `from_environment`."""
        return json.dumps(self)


def from_environment() -> TrackingServer | None:
    """Return the tracking server of the run of this process; None if it has none."""
    value = os.environ.get(TRACKING)
    return TrackingServer(*json.loads(value)) if value else None


def run_id_from_output(uri: str) -> str:
    """Return the id of a run on a cluster, from the URI of an output of one of its steps.

    TFX does not provide the id on a cluster. The URI is ROOT/PIPELINE/RUN/TASK/…/OUTPUT on Kubeflow
    Pipelines, where RUN is a UUID, and ROOT/PROJECT/RUN/TASK/OUTPUT on Vertex AI Pipelines.

    Args:
      uri: the URI of the output.

    Raises:
      IndexError: the URI has neither form.
    """
    found = re.search(r"/([0-9a-f]{8}(-[0-9a-f]{4}){3}-\w{12})/", uri)
    return found[1] if found else uri.rstrip("/").split("/")[-3]


def track(tracking: TrackingServer, content: Content) -> None:
    """Send a run. If this fails, log one warning and keep the run for `send_unsent`.

    Args:
      tracking: the tracking server.
      content: the content of the report of the run.

    Raises:
      OSError, tensorflow.errors.OpError: the run was not sent, and its file cannot be written.
    """
    run = content.run
    tags = {**tracking.tags, **_tags(content)}
    open_run = os.environ.get(_OPEN_RUN, "")
    record = Record(content, tags, _pushed_content(run), open_run=open_run)
    try:
        with connected(tracking.uri) as client:
            if pushed := send(client, record):
                move_champion(client, tracking.name, pushed)
    except UserError as error:
        keep(tracking.unsent, record)
        remedy = "`amazon-reviews runs --send` sends it"
        logging.warning("%s; the run %s was not sent; %s", error, run.id, remedy)


def _pushed_content(run: Run) -> str:
    """Return the `identity` of the pushed model; empty if there is none, or it cannot be read."""
    if not run.pushed_to:
        return ""
    try:
        return identity(path_utils.serving_model_path(run.uris["model"]))
    except (InputError, OSError, tf.errors.OpError):  # A record of a run must not fail the run.
        return ""


def _tags(content: Content) -> dict[str, str]:
    run, decision = content.run, summary.decision(content)
    judged = judge(decision)
    return {
        RESULT_TAG: decision.result,
        VERDICT_TAG: judged.sentence,
        NOTE_TAG: judged.sentence,
        "host": platform.node(),
        **({"span": run.span} if run.span else {}),
        **({"alarm": content.comparison.severity} if content.comparison else {}),
        **{f"version.{name}": version for name, version in run.versions.items()},
    }
