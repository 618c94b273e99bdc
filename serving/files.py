"""The files of a serving folder, which is local or at a URL that TensorFlow reads, such as gs://.

Local files are read without TensorFlow, whose import takes seconds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any


def names(folder: str) -> list[str]:
    """Return the names in a folder; none if it is missing.

    Raises:
      OSError: the folder cannot be listed; a NotADirectoryError if it is a local file.
    """
    if "://" not in folder:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []
    import tensorflow as tf

    with _errors_as_oserror(folder):
        try:
            # `listdir` raises NotFoundError for every folder that it cannot read, `stat` does not.
            tf.io.gfile.stat(folder)
            found = tf.io.gfile.listdir(folder)
        except tf.errors.NotFoundError:
            return []
    # A listing of gs:// gives folders a slash at the end, and contains the folder itself as "".
    return [name.rstrip("/") for name in found if name]


def size(file: str) -> int:
    """Return the size of an existing file in bytes.

    Raises:
      OSError: the file cannot be read.
    """
    if "://" not in file:
        return os.path.getsize(file)
    import tensorflow as tf

    with _errors_as_oserror(file):
        return int(tf.io.gfile.stat(file).length)


def is_file(path: str) -> bool:
    """Return whether there is a file with this path, and not a folder.

    Raises:
      OSError: a file at a URL cannot be read.
    """
    if "://" not in path:
        return os.path.isfile(path)
    import tensorflow as tf

    with _errors_as_oserror(path):
        return tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path)


@contextlib.contextmanager
def opened(file: str) -> Iterator[Any]:
    """Open a file to read its bytes; the value has the method `read` with a number of bytes.

    Raises:
      OSError: the file cannot be read.
    """
    if "://" not in file:
        with open(file, "rb") as local:
            yield local
        return
    import tensorflow as tf

    with _errors_as_oserror(file), tf.io.gfile.GFile(file, "rb") as remote:
        yield remote


@contextlib.contextmanager
def _errors_as_oserror(path: str) -> Iterator[None]:
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
