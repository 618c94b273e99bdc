"""A TFJob from its creation to its end: made or found again, followed, deleted when cancelled."""

from __future__ import annotations

import time
from typing import Any

from absl import logging

from core.errors import InputError
from platforms.jobs.step import sigterm_raises
from platforms.jobs.tfjob.client import TFJobClient, Unreachable
from platforms.jobs.tfjob.follow import (
    SUCCEEDED,
    Follow,
    GivenUp,
    Terms,
    TFJobFailed,
    end_of,
    said_in,
)

_SECONDS_TO_BE_GONE = 600.0
_SECONDS_TO_DELETE = 20.0
"""When cancelled; Kubernetes kills a process 30 seconds after SIGTERM."""


def run(client: TFJobClient, manifest: dict[str, Any], terms: Terms) -> None:
    """Returns when the TFJob has succeeded; its logs are in this process's log by then.

    A TFJob of the same name is taken for one that an earlier try has made: it is followed if it
    runs, enough if it succeeded and `is_done`, else deleted and made anew. When this process is
    told to end, by SIGTERM in the main thread or by Ctrl-C, or the time is up, it is deleted. One
    that failed stays as it is, to be looked at.

    Args:
      client: for the manifest's namespace.
      manifest: what is created.
      terms: how long to wait for what.

    Raises:
      InputError: Kubernetes or the training refuses what it was told.
      TFJobFailed: the training failed, was refused, was deleted by somebody else, or took too
        long.
      Unreachable: the Kubernetes API did not answer for minutes; the TFJob is left alone.
      SystemExit, KeyboardInterrupt: SIGTERM, SIGINT came.
    """
    name = manifest["metadata"]["name"]
    with sigterm_raises():
        try:
            uid = _create_or_find(client, manifest, terms)
            if not Follow(client, name, uid, terms).until_end():
                _delete(client, name)
        except (SystemExit, KeyboardInterrupt, GivenUp):
            _delete(client, name)
            raise


def _create_or_find(client: TFJobClient, manifest: dict[str, Any], terms: Terms) -> str:
    """The uid of the TFJob to follow."""
    name = manifest["metadata"]["name"]
    while True:
        found = client.get(name)
        if found is None:
            created = client.create(manifest)
            if created is not None:
                logging.info("Created TFJob %s in namespace %s", name, client.namespace)
                return str(created["metadata"]["uid"])
            # Somebody was quicker, or the answer to a first attempt was lost.
            found = client.get(name)
        if found is None:
            time.sleep(terms.poll_seconds)
            continue
        if "deletionTimestamp" not in found["metadata"]:
            end = end_of(found)
            if end is None or (end["type"] == SUCCEEDED and terms.is_done()):
                logging.info("TFJob %s is there already: following it", name)
                return str(found["metadata"]["uid"])
            logging.info(
                "Deleting TFJob %s of an earlier try, which %s: %s",
                name,
                end["type"].lower(),
                said_in(end),
            )
            client.delete(name)
        _wait_until_gone(client, name, terms.poll_seconds)


def _wait_until_gone(client: TFJobClient, name: str, poll_seconds: float) -> None:
    deadline = time.monotonic() + _SECONDS_TO_BE_GONE
    while client.get(name) is not None:
        if time.monotonic() > deadline:
            raise TFJobFailed(
                f"TFJob {name} of an earlier try is being deleted for {_SECONDS_TO_BE_GONE:.0f} s "
                f"now; what holds it up is in kubectl describe tfjob {name} -n {client.namespace}"
            )
        time.sleep(poll_seconds)


def _delete(client: TFJobClient, name: str) -> None:
    logging.info("Deleting TFJob %s", name)
    try:
        client.delete(name, _SECONDS_TO_DELETE)
    except (InputError, Unreachable) as error:
        logging.error(
            "TFJob %s may still be there: %s; kubectl delete tfjob %s -n %s",
            name,
            error,
            name,
            client.namespace,
        )
