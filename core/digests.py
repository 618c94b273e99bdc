"""The SHA-256 of each file of a pushed version. Equal digests show that it is unchanged."""

from __future__ import annotations

import os
from collections.abc import Mapping

from core import storage
from core.errors import InputError
from core.files import stream_sha256

_EXTRA = "assets.extra/"
"""The folder of a SavedModel in which TensorFlow reads no file."""
GRAPH_DIGEST = f"{_EXTRA}graph_digest.txt"
"""The file in a SavedModel with a digest of its graph, which `serving.identity` reads."""
DIGESTS = f"{_EXTRA}SHA256SUMS"
"""The file with the digests in a pushed version, in the format of `sha256sum`."""


def sha256(file: str) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits.

    Args:
      file: a local path, or a URL of a file system that TensorFlow reads.

    Raises:
      OSError: the file cannot be read.
    """
    with storage.opened(file) as stream:
        return stream_sha256(stream)


def to_text(digests: Mapping[str, str]) -> str:
    """Return the content of DIGESTS.

    Args:
      digests: path of a file relative to the folder of the version -> its SHA-256.
    """
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def check_digests(model: str) -> None:
    """Check that the files of a version that TensorFlow reads are those that were pushed.

    TensorFlow itself would load a vocabulary that was cut off, or the classes of another version,
    after a copy or a restore that is incomplete. A version without digests is not checked.

    Args:
      model: the folder of the version, or its URL.

    Raises:
      InputError: a file is missing or differs. The message names it.
      OSError: a file cannot be read.
    """
    for name, digest in read_digests(model).items():
        # A line that is damaged has no name.
        if not name or name.startswith(_EXTRA):
            continue
        if problem := _difference(model, name, digest):
            raise InputError(problem)


def is_unchanged(model: str) -> bool:
    """Return whether all files of a version have the digests that its push recorded.

    Args:
      model: the folder of the version, or its URL.

    Returns:
      False if a file is missing or differs, or if the version has no digests because another
      program wrote it.

    Raises:
      OSError: a file cannot be read.
    """
    digests = read_digests(model)
    differences = (_difference(model, name, digest) for name, digest in digests.items())
    return bool(digests) and not any(differences)


def _difference(model: str, name: str, digest: str) -> str:
    """Return how a file of a version differs from that of the push; empty if it does not.

    Raises:
      OSError: the file cannot be read.
    """
    file = os.path.join(model, name)
    if not storage.is_file(file):
        return f"{name} is missing, which {DIGESTS} lists"
    if sha256(file) != digest:
        return f"{name} is not the file that was pushed: {DIGESTS} has another digest"
    return ""


def read_digests(model: str) -> dict[str, str]:
    """Return path of a file in a version, relative to it -> the SHA-256 that its push recorded.

    Args:
      model: the folder of the version, or its URL.

    Returns:
      An empty dictionary for a version without digests, because another program wrote it.

    Raises:
      OSError: a file cannot be read.
    """
    path = os.path.join(model, DIGESTS)
    if not storage.is_file(path):
        return {}
    lines = storage.read(path).decode("utf-8", "replace").split("\n")[:-1]
    parts = [line.partition("  ") for line in lines]
    return {name: digest for digest, _, name in parts}
