"""The runs that MLflow did not receive: each is kept in a file, from which it is sent later."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf
from tfx.dsl.io import fileio
from tfx.utils import io_utils

from components.run_report.content import Content, collect
from components.run_report.history import Run, Step
from components.run_report.mlflow_connection import does_not_respond
from components.run_report.mlflow_run import Record, find_model, lost_artifacts, send
from components.run_report.outcome import Outcome
from core.errors import ConfigError, InputError, cause
from core.files import lock_file
from core.storage import is_url

if TYPE_CHECKING:
    from mlflow import MlflowClient


class Sent(NamedTuple):
    """The result of an attempt to send a run.

    Attributes:
      run: the id of the run, or the name of its file if the file cannot be read.
      problem: the reason why the run was not sent, and the file; empty if the run was sent.
    """

    run: str
    problem: str = ""


def send_unsent(client: MlflowClient, unsent: str) -> Iterator[Sent]:
    """Send the runs that were not sent, one after the other; yield the result of each attempt.

    A run that cannot be sent stays in the folder, and the others are sent. If several processes use
    the same local folder, only one of them sends at a time.

    Args:
      client: a client of `connected`.
      unsent: `TrackingServer.unsent`.

    Raises:
      ServerError: the server does not respond.
      ConfigError: the folder cannot be locked.
    """
    with _sole_sender(unsent):
        for file in sorted(fileio.glob(os.path.join(unsent, "*.json"))):
            try:
                record = read_kept(file)
                if record is None:
                    continue
                send(client, record)
            except Exception as error:  # MLflow raises the errors of many libraries.
                if does_not_respond(error):
                    raise
                problem = f"{file}: {cause(error)}; to give the run up, delete this file"
                yield Sent(os.path.basename(file).removesuffix(".json"), problem)
                continue
            with contextlib.suppress(fileio.NotFoundError):  # Another machine has sent it too.
                fileio.remove(file)
            yield Sent(record.content.run.id)


def keep(unsent: str, record: Record) -> None:
    """Write a run to the folder of the runs that were not sent.

    Args:
      unsent: `TrackingServer.unsent`.
      record: the run.

    Raises:
      OSError, tensorflow.errors.OpError: the file cannot be written.
    """
    run = record.content.run
    kept = {
        "run": {
            **vars(run),
            "outcome": run.outcome and run.outcome.to_json(),
            "outputs": {},
        },
        "tags": record.tags,
        "model": record.model,
        "open_run": record.open_run,
        "lacks": _lacks(record.content),
    }
    file = os.path.join(unsent, f"{run.id}.json")
    # The file is renamed, so that no reader finds an incomplete file.
    io_utils.write_string_file(f"{file}.partial", json.dumps(kept))
    fileio.rename(f"{file}.partial", file, overwrite=True)


def read_kept(file: str) -> Record | None:
    """Return the run in a file of `keep`; None if the file no longer exists.

    Args:
      file: the file.

    Raises:
      InputError: the file is damaged, or a part of the run has been lost since `keep`.
    """
    try:
        with tf.io.gfile.GFile(file) as stream:
            text = stream.read()
    except tf.errors.NotFoundError:
        return None
    try:
        kept = json.loads(text)
        stored = kept["run"]
        steps = [Step(*step) for step in stored["steps"]]
        outcome = Outcome.from_json(stored["outcome"]) if stored["outcome"] else None
        run = Run(**{**stored, "steps": steps, "outcome": outcome})
        tags, model = dict(kept["tags"]), str(kept.get("model", ""))
        open_run, lacked = str(kept.get("open_run", "")), list(kept.get("lacks", ()))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is no run that was kept for MLflow ({cause(error)})") from None
    folder = find_model(run, model) if run.pushed_to else ""
    content = collect(run, folder or None)
    if lost := [line for line in _lacks(content) if line not in lacked]:
        raise InputError(f"a part of the run was lost: {'; '.join(lost)}")
    return Record(content, tags, model, folder, open_run)


def _lacks(content: Content) -> list[str]:
    """Return a line for each part of a run that is missing or cannot be read."""
    return [*lost_artifacts(content.run).values(), *content.problems]


@contextlib.contextmanager
def _sole_sender(unsent: str) -> Iterator[None]:
    """Hold the lock of a local folder; wait until no other process holds it.

    A bucket has no locks, so two processes may send a run at the same time. `mlflow_run` prevents
    that MLflow then has the run twice.

    Raises:
      ConfigError: the folder cannot be locked.
    """
    if is_url(unsent) or not os.path.isdir(unsent):
        yield
        return
    path = os.path.join(unsent, ".lock")
    try:
        lock = lock_file(path, waits=True)
    except OSError as error:
        raise ConfigError(f"paths.root: {path} cannot be locked: {error.strerror}") from None
    try:
        yield
    finally:
        os.close(lock)
