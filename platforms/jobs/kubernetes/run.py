"""Run a job: create it or find that of an earlier attempt, follow it, and delete it."""

from __future__ import annotations

import time
from typing import Any

from absl import logging

from core.errors import InputError
from platforms.jobs.kubernetes.client import JobClient
from platforms.jobs.kubernetes.errors import Unreachable
from platforms.jobs.kubernetes.follow import Follow, JobAborted, JobFailed, Terms
from platforms.jobs.kubernetes.kind import SUCCEEDED
from platforms.jobs.step import sigterm_raises

_SECONDS_TO_DISAPPEAR = 600.0
"""Timeout for the deletion of an earlier attempt's job, with its pods."""
_SECONDS_TO_DELETE = 20.0
"""Timeout of the request to delete the job; SIGKILL follows 30 seconds after SIGTERM."""


def run(client: JobClient, manifest: dict[str, Any], terms: Terms) -> None:
    """Run a job; return when it has succeeded and its logs are in the log of this process.

    A job of the same name belongs to an earlier attempt of the step. If it still runs, this
    function follows it. If it succeeded and `terms.is_done`, this function returns. Otherwise this
    function deletes the earlier job and creates a new one.

    This function deletes the job after SIGTERM in the main thread, after SIGINT, and when it raises
    JobAborted, for example after a timeout. A job that its controller has failed is kept.

    Args:
      client: a client for the namespace of the manifest.
      manifest: the job to create.
      terms: the limits of the job.

    Raises:
      InputError: Kubernetes or the training refuses a setting.
      JobFailed: the training failed, was refused, was deleted by somebody else, or took too
        long.
      Unreachable: the Kubernetes API did not respond for minutes; the job is not deleted.
      SystemExit, KeyboardInterrupt: after SIGTERM or SIGINT.
    """
    name = manifest["metadata"]["name"]
    with sigterm_raises():
        try:
            uid = _create_or_find(client, manifest, terms)
            if not Follow(client, name, uid, terms).until_end():
                _delete(client, name)
        except (SystemExit, KeyboardInterrupt, JobAborted):
            _delete(client, name)
            raise


def _create_or_find(client: JobClient, manifest: dict[str, Any], terms: Terms) -> str:
    """Return the uid of the job to follow."""
    name = manifest["metadata"]["name"]
    label = f"{client.kind.title} {name}"
    while True:
        found = client.get(name)
        if found is None:
            created = client.create(manifest)
            if created is not None:
                logging.info("Created %s in namespace %s", label, client.namespace)
                _check_fields(created, manifest)
                return str(created["metadata"]["uid"])
            # Another process created it, or the response to an earlier attempt was lost.
            found = client.get(name)
        if found is None:
            time.sleep(terms.poll_seconds)
            continue
        if "deletionTimestamp" not in found["metadata"]:
            end = client.kind.end_of(found)
            if end is None or (end.type == SUCCEEDED and terms.is_done()):
                logging.info("Following %s of an earlier attempt", label)
                return str(found["metadata"]["uid"])
            logging.info(
                "Deleting %s of an earlier attempt, which %s: %s",
                label,
                end.type.lower(),
                end.message,
            )
            client.delete(name)
        _wait_for_deletion(client, name, terms.poll_seconds)


def _check_fields(created: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Raise JobAborted if the API server dropped fields that its older CRD does not define."""
    dropped = sorted(set(manifest["spec"]) - set(created["spec"]))
    if dropped:
        raise JobAborted(
            f"{manifest['kind']} {manifest['metadata']['name']}: the CRD of this cluster has no "
            f"field spec.{dropped[0]}: update it, or change kubeflow.training_job"
        )


def _wait_for_deletion(client: JobClient, name: str, poll_seconds: float) -> None:
    deadline = time.monotonic() + _SECONDS_TO_DISAPPEAR
    while client.get(name) is not None:
        if time.monotonic() > deadline:
            raise JobFailed(
                f"{client.kind.title} {name} of an earlier attempt still exists "
                f"{_SECONDS_TO_DISAPPEAR:.0f} s after its deletion; see kubectl describe "
                f"{client.kind.name} {name} -n {client.namespace}"
            )
        time.sleep(poll_seconds)


def _delete(client: JobClient, name: str) -> None:
    logging.info("Deleting %s %s", client.kind.title, name)
    try:
        client.delete(name, _SECONDS_TO_DELETE)
    except (InputError, Unreachable) as error:
        logging.error(
            "%s %s may still exist: %s; delete it with kubectl delete %s %s -n %s",
            client.kind.title,
            name,
            error,
            client.kind.name,
            name,
            client.namespace,
        )
