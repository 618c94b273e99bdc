"""The files of the Examples of a split, and their folders as paths that are no patterns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from tfx import types
from tfx.types import artifact_utils

from core.errors import InputError
from core.files import list_files, without_magic


def example_files(folder: str) -> list[str]:
    """Return the sorted TFRecord files in the folder of a split, which always has some.

    Raises:
      InputError: the files were deleted.
    """
    files = list_files(folder)
    if not files:
        raise InputError(
            f"{folder}: the Examples were deleted, although ML Metadata lists them; run once with "
            "--set cache=false to write them again"
        )
    return files


def split_files(examples: list[types.Artifact], splits: Iterable[str]) -> list[str]:
    """Return the files of some splits of Examples artifacts; see `example_files`."""
    folders = [uri for split in splits for uri in artifact_utils.get_split_uris(examples, split)]
    return sorted(path for folder in folders for path in example_files(folder))


@contextlib.contextmanager
def uris_without_magic(artifacts: Iterable[types.Artifact]) -> Iterator[None]:
    """Replace the URIs of artifacts while code of TFX, TFMA or Beam matches patterns below them."""
    uris = [(artifact, artifact.uri) for artifact in artifacts]
    try:
        for artifact, uri in uris:
            artifact.uri = without_magic(uri)
        yield
    finally:
        for artifact, uri in uris:
            artifact.uri = uri
