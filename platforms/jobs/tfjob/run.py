"""The run of a TFJob: creation or search of an earlier one, following, deletion."""

from __future__ import annotations

import time
from typing import Any

from absl import logging

from core.errors import InputError
from platforms.jobs.step import sigterm_raises
from platforms.jobs.tfjob.client import TFJobClient
from platforms.jobs.tfjob.conditions import SUCCEEDED, end_of, message_of
from platforms.jobs.tfjob.errors import Unreachable
from platforms.jobs.tfjob.follow import Follow, Terms, TFJobAborted, TFJobFailed

_SECONDS_TO_DISAPPEAR = 600.0
"""Timeout for the deletion of an earlier attempt's TFJob, with its pods."""
_SECONDS_TO_DELETE = 20.0
"""Timeout of the request to delete the TFJob after SIGTERM; SIGKILL follows after 30 seconds."""


def run(client: TFJobClient, manifest: dict[str, Any], terms: Terms) -> None:
    """Run a TFJob; return when it has succeeded and its logs are in the log of this process.

    A TFJob of the same name belongs to an earlier attempt of the step. If it still runs, this
    function follows it. If it succeeded and `terms.is_done`, this function returns. Otherwise it
    deletes that TFJob and creates a new one. This function deletes the TFJob after SIGTERM in the
    main thread, after SIGINT, and after a timeout. A failed TFJob is kept for an inspection.

    Args:
      client: a client for the namespace of the manifest.
      manifest: the TFJob to create.
      terms: the limits of the TFJob.

    Raises:
      InputError: Kubernetes or the training refuses a setting.
      TFJobFailed: the training failed, was refused, was deleted by somebody else, or took too
        long.
      Unreachable: the Kubernetes API did not respond for minutes; the TFJob is not deleted.
      SystemExit, KeyboardInterrupt: after SIGTERM or SIGINT.
    """
    name = manifest["metadata"]["name"]
    with sigterm_raises():
        try:
            uid = _create_or_find(client, manifest, terms)
            if not Follow(client, name, uid, terms).until_end():
                _delete(client, name)
        except (SystemExit, KeyboardInterrupt, TFJobAborted):
            _delete(client, name)
            raise


def _create_or_find(client: TFJobClient, manifest: dict[str, Any], terms: Terms) -> str:
    """Return the uid of the TFJob to follow."""
    name = manifest["metadata"]["name"]
    while True:
        found = client.get(name)
        if found is None:
            created = client.create(manifest)
            if created is not None:
                logging.info("Created TFJob %s in namespace %s", name, client.namespace)
                return str(created["metadata"]["uid"])
            # Another process created it, or the response to an earlier attempt was lost.
            found = client.get(name)
        if found is None:
            time.sleep(terms.poll_seconds)
            continue
        if "deletionTimestamp" not in found["metadata"]:
            end = end_of(found)
            if end is None or (end["type"] == SUCCEEDED and terms.is_done()):
                logging.info("Following TFJob %s of an earlier attempt", name)
                return str(found["metadata"]["uid"])
            logging.info(
                "Deleting TFJob %s of an earlier attempt, which %s: %s",
                name,
                end["type"].lower(),
                message_of(end),
            )
            client.delete(name)
        _wait_for_deletion(client, name, terms.poll_seconds)


def _wait_for_deletion(client: TFJobClient, name: str, poll_seconds: float) -> None:
    deadline = time.monotonic() + _SECONDS_TO_DISAPPEAR
    while client.get(name) is not None:
        if time.monotonic() > deadline:
            raise TFJobFailed(
                f"TFJob {name} of an earlier attempt still exists {_SECONDS_TO_DISAPPEAR:.0f} s "
                f"after its deletion; see kubectl describe tfjob {name} -n {client.namespace}"
            )
        time.sleep(poll_seconds)


def _delete(client: TFJobClient, name: str) -> None:
    logging.info("Deleting TFJob %s", name)
    try:
        client.delete(name, _SECONDS_TO_DELETE)
    except (InputError, Unreachable) as error:
        logging.error(
            "TFJob %s may still exist: %s; delete it with kubectl delete tfjob %s -n %s",
            name,
            error,
            name,
            client.namespace,
        )
