"""What Examples hold, as a digest that is the same wherever and whenever they are written.

Transform writes the same Examples with other bytes each time: Protocol Buffers have no fixed order
for the features of one. So Transform leaves a digest of what it made them from beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

_FILE = "content.sha256"
_FILES_AT_ONCE = 16
_GZIP_TRAILER = 8


def write(folder: str, files: Iterable[str], made_with: Iterable[str]) -> None:
    """Leaves the digest of Examples in `folder`, which their splits' folders are in.

    Args:
      folder: of an Examples artifact.
      files: gzipped files that they were made from, written in the same way each time.
      made_with: the settings and the version of the code.
    """
    text = json.dumps([_checksums(files), list(made_with)])
    with tf.io.gfile.GFile(os.path.join(folder, _FILE), "w") as stream:
        stream.write(hashlib.sha256(text.encode()).hexdigest())


def digest(patterns: Sequence[str]) -> str:
    """The digest of the Examples in the files that match `patterns`, such as FOLDER/Split-train/*.

    It is that which `write` left in FOLDER; without one, that of the files' bytes.
    """
    found = []
    for pattern in patterns:
        split = os.path.dirname(pattern)
        file = os.path.join(os.path.dirname(split), _FILE)
        if tf.io.gfile.exists(file):
            with tf.io.gfile.GFile(file) as stream:
                found.append([os.path.basename(split), stream.read()])
        else:
            found.append([_checksums(tf.io.gfile.glob(pattern))])
    return json.dumps(found)


def _checksums(files: Iterable[str]) -> list[tuple[str, int, str]]:
    # Of remote files each takes a moment to be opened.
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        return list(pool.map(_checksum, sorted(files)))


def _checksum(file: str) -> tuple[str, int, str]:
    """Name, size, and the checksum that gzip has at the end."""
    size = tf.io.gfile.stat(file).length
    with tf.io.gfile.GFile(file, "rb") as stream:
        stream.seek(max(0, size - _GZIP_TRAILER))
        return os.path.basename(file), size, stream.read().hex()
