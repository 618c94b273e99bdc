"""Pushed models that were deleted from `paths.serving`: neither the cache nor a report counts them.

The output artifact of a Pusher is a record beside the pipeline's other artifacts. TFX's cache
checks that this record exists, not the model that was copied to `paths.serving`.
"""

from __future__ import annotations

import os

from absl import logging
from ml_metadata.errors import NotFoundError
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.dsl.io import fileio
from tfx.orchestration import metadata

_TYPE = "PushedModel"


def destination(pushed: mlmd.Artifact) -> str:
    """Return the folder that a PushedModel was copied to; empty when nothing was pushed."""
    values = dict(pushed.custom_properties)
    if "pushed" not in values or values["pushed"].int_value != 1:
        return ""
    folder: str = values["pushed_destination"].string_value
    return folder


def is_there(folder: str) -> bool:
    """Whether a pushed model is complete; `saved_model.pb` is what the Pusher writes last."""
    exists: bool = fileio.exists(os.path.join(folder, "saved_model.pb"))
    return exists


def mark_deleted(handle: metadata.Metadata, serving: str) -> None:
    """Mark the pushed models that are gone from the folder `serving` as deleted in ML Metadata.

    An execution with a deleted output is no cache hit, so a Pusher of such a model pushes again.
    """
    try:
        pushed = handle.store.get_artifacts_by_type(_TYPE)
    except NotFoundError:  # The first run.
        return
    gone = [artifact for artifact in pushed if _is_gone(artifact, serving)]
    for artifact in gone:
        logging.info("The model pushed to %s was deleted", destination(artifact))
        artifact.state = mlmd.Artifact.DELETED
    if gone:
        handle.store.put_artifacts(gone)


def _is_gone(artifact: mlmd.Artifact, serving: str) -> bool:
    folder = destination(artifact)
    return (
        artifact.state == mlmd.Artifact.LIVE
        and os.path.dirname(folder) == serving.rstrip("/")
        # Runs on several machines may share the records: only the one that pushed can tell.
        and fileio.exists(artifact.uri)
        and not is_there(folder)
    )
