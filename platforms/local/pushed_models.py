"""Pushed models that are no longer served from `paths.serving`, and therefore no cache hits.

The output artifact of a Pusher is a record among the pipeline's other artifacts. TFX's cache checks
that this record exists, but not the model that was copied to `paths.serving`.
"""

from __future__ import annotations

import os

from absl import logging
from ml_metadata.errors import NotFoundError
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.dsl.io import fileio
from tfx.orchestration import metadata

from components.properties import PUSHED_DESTINATION
from serving.versions import versions

_TYPE = "PushedModel"


def destination(pushed: mlmd.Artifact) -> str:
    """Return the folder of a pushed model; empty if no model was pushed."""
    values = dict(pushed.custom_properties)
    if "pushed" not in values or values["pushed"].int_value != 1:
        return ""
    folder: str = values[PUSHED_DESTINATION].string_value
    return folder


def mark_replaced(handle: metadata.Metadata, serving: str) -> None:
    """Mark the pushed models in ML Metadata that were deleted from `serving` or are not the newest.

    TFX's cache ignores an execution whose output is marked, so the Pusher pushes such a model
    again. Without the mark, a run that returns to earlier settings would be a cache hit, and the
    model of the later settings would stay in production.
    """
    try:
        pushed = handle.store.get_artifacts_by_type(_TYPE)
    except NotFoundError:  # The first run.
        return
    newest = next(versions(serving), None)
    replaced = [
        artifact
        for artifact in pushed
        if _is_known(artifact, serving) and destination(artifact) != newest
    ]
    for artifact in replaced:
        logging.info("No longer served from %s: %s", serving, destination(artifact))
        artifact.state = mlmd.Artifact.MARKED_FOR_DELETION
    if replaced:
        handle.store.put_artifacts(replaced)


def _is_known(artifact: mlmd.Artifact, serving: str) -> bool:
    """Return whether this machine pushed the model into `serving` and has not marked it yet."""
    return (
        artifact.state == mlmd.Artifact.LIVE
        and os.path.dirname(destination(artifact)) == serving.rstrip("/")
        # Several machines may share ML Metadata. Only the machine that pushed the model has the
        # record.
        and fileio.exists(artifact.uri)
    )
