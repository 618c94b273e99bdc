"""A digest of the content of Examples, stored next to their splits.

The digest of transformed Examples is computed from the input of Transform. Transform writes equal
Examples with different bytes each time, because Protocol Buffers do not fix the order of features.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence

import tensorflow as tf

from core.files import list_files
from examples.tfrecords import map_files

_FILE = "content.sha256"
_GZIP_TRAILER = 8


def write_digest(folder: str, files: Iterable[str], made_with: Iterable[str]) -> None:
    """Write the digest of the Examples artifact in `folder`.

    Args:
      folder: the folder of the artifact, local or remote.
      files: the gzipped input files of the Examples.
      made_with: the settings and the version of the code that made the Examples.

    Raises:
      tensorflow.errors.OpError: an input file cannot be read, or the digest cannot be written.
    """
    text = json.dumps([_checksums(files), list(made_with)])
    with tf.io.gfile.GFile(os.path.join(folder, _FILE), "w") as stream:
        stream.write(hashlib.sha256(text.encode()).hexdigest())


def content_digest(patterns: Sequence[str]) -> str:
    """Return the digest of the Examples in the files that match `patterns`.

    Args:
      patterns: patterns of files. The digest for ARTIFACT/Split-NAME/* is the one that
        `write_digest` stored in ARTIFACT. If there is none, the digest consists of the checksums of
        the files.

    Raises:
      tensorflow.errors.OpError: the stored digest or a file cannot be read.
    """
    found = []
    for pattern in patterns:
        split = os.path.dirname(pattern)
        file = os.path.join(os.path.dirname(split), _FILE)
        if tf.io.gfile.exists(file):
            with tf.io.gfile.GFile(file) as stream:
                found.append([os.path.basename(split), stream.read()])
        else:
            found.append([_checksums(list_files(*os.path.split(pattern)))])
    return json.dumps(found)


def _checksums(files: Iterable[str]) -> list[tuple[str, int, str]]:
    return map_files(_checksum, sorted(files))


def _checksum(file: str) -> tuple[str, int, str]:
    """Return the name, the size, and the checksum at the end of a gzipped file."""
    size = tf.io.gfile.stat(file).length
    with tf.io.gfile.GFile(file, "rb") as stream:
        stream.seek(max(0, size - _GZIP_TRAILER))
        return os.path.basename(file), size, stream.read().hex()
