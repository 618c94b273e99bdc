"""Digests of the content of Examples, which do not depend on where and when they are written.

Transform writes equal Examples with different bytes each time, because Protocol Buffers do not fix
the order of the features. So Transform stores a digest of its inputs next to the Examples.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

from core.files import list_files

_FILE = "content.sha256"
_FILES_AT_ONCE = 16
_GZIP_TRAILER = 8


def write(folder: str, files: Iterable[str], made_with: Iterable[str]) -> None:
    """Write the digest of Examples to `folder`.

    Args:
      folder: the folder of an Examples artifact, which contains the folders of its splits.
      files: the gzipped input files of the Examples; equal content has equal bytes there.
      made_with: the settings and the version of the code that made the Examples.
    """
    text = json.dumps([_checksums(files), list(made_with)])
    with tf.io.gfile.GFile(os.path.join(folder, _FILE), "w") as stream:
        stream.write(hashlib.sha256(text.encode()).hexdigest())


def digest(patterns: Sequence[str]) -> str:
    """Return the digest of the Examples in the files that match `patterns`.

    For a pattern such as FOLDER/Split-train/* this is the digest that `write` has stored in FOLDER,
    or else the checksums of the files.
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
    # Opening a remote file takes tens of milliseconds.
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        return list(pool.map(_checksum, sorted(files)))


def _checksum(file: str) -> tuple[str, int, str]:
    """Return the name, the size, and the checksum at the end of a gzipped file."""
    size = tf.io.gfile.stat(file).length
    with tf.io.gfile.GFile(file, "rb") as stream:
        stream.seek(max(0, size - _GZIP_TRAILER))
        return os.path.basename(file), size, stream.read().hex()
