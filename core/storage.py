"""Files of a folder, which is local or at a URL that TensorFlow reads, such as gs://.

Local files are read without TensorFlow, whose import takes seconds.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

NO_HOME = "/nonexistent"
"""The home folder of a user without one. It does not exist."""
_VARIABLE = re.compile(r"\$(\{[^}]*\}|[A-Z_][A-Z0-9_]*)")
"""A variable of the shell, such as ${HOME}, ${HOME:-/root} or $HOME."""
_SCHEME = re.compile(r"(gs|s3|hdfs):/?")
"""The beginning of a URL of an object store that may be not valid."""


def is_url(path: str) -> bool:
    """Return whether a path is a URL, which TensorFlow or Beam reads, instead of a local path.

    Every path with `://` is a URL. So is file:///folder, although the folder is local.
    """
    return "://" in path


def is_bucket(path: str) -> bool:
    """Return whether a path is in a bucket of Google Cloud Storage."""
    return path.startswith("gs://")


def expand_home(path: str) -> str:
    """Return a local path with `~` expanded; unchanged if no home folder is known for it."""
    expanded = os.path.expanduser(path)
    return path if path.startswith("~") and expanded.startswith(NO_HOME) else expanded


def absolute(path: str) -> str:
    """Return the absolute form of a local path, with `~` expanded; return a URL unchanged.

    Raises:
      ValueError: the path contains a variable, is a URL of an object store that is not valid, such
        as `gs:/bucket`, or begins with `~` and there is no such home folder.
    """
    if found := _VARIABLE.search(path):
        raise ValueError(
            f"{path} contains {found[0]}, and variables in settings are not replaced; write its "
            "value, or let the shell replace it with --set"
        )
    if is_url(path):
        return path
    scheme = _SCHEME.match(path)
    if scheme:
        rest = path.removeprefix(scheme[0])
        raise ValueError(f"{path} is not a valid URL; write {scheme[1]}://{rest}")
    expanded = expand_home(path)
    if expanded.startswith("~"):
        home = path.partition("/")[0]
        raise ValueError(
            f"{path} begins with {home}, and no home folder is known for it; write the whole path, "
            f"or ./{path} for a folder with this name"
        )
    return os.path.abspath(expanded)


def absolute_local(path: str) -> str:
    """Return the absolute form of a path of this machine, with `~` expanded.

    Raises:
      ValueError: the path contains a variable, is a URL, or begins with `~` and there is no such
        home folder.
    """
    if is_url(path) or _SCHEME.match(path):
        raise ValueError("must be a path of this machine, and no URL")
    return absolute(path)


def names(folder: str) -> list[str]:
    """Return the names in a folder; an empty list if the folder is missing.

    Raises:
      NotADirectoryError: the path is that of a local file.
      OSError: the folder cannot be listed.
    """
    if not is_url(folder):
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []
    import tensorflow as tf

    with _errors_as_oserror(folder, "read"):
        try:
            return tensorflow_names(folder)
        except tf.errors.NotFoundError:  # the path is that of a file
            return []


def tensorflow_names(folder: str) -> list[str]:
    """Return the names in a folder, as TensorFlow lists it; an empty list if it is missing.

    Args:
      folder: a local folder, or a URL that TensorFlow reads.

    Raises:
      tensorflow.errors.OpError: the folder cannot be listed, or the path is that of a file.
    """
    import tensorflow as tf

    try:
        # `listdir` raises NotFoundError for every folder that it cannot read; `stat` raises it
        # only for a missing folder.
        tf.io.gfile.stat(folder)
    except tf.errors.NotFoundError:
        return []
    # In a listing of gs://, the name of a folder has a slash at its end, and that of the listed
    # folder is "".
    return [name.rstrip("/") for name in tf.io.gfile.listdir(folder) if name]


def size(file: str) -> int:
    """Return the size of an existing file in bytes.

    Raises:
      OSError: the file cannot be read.
    """
    if not is_url(file):
        return os.path.getsize(file)
    import tensorflow as tf

    with _errors_as_oserror(file, "read"):
        return int(tf.io.gfile.stat(file).length)


def is_file(path: str) -> bool:
    """Return whether a path is that of an existing file.

    Raises:
      OSError: a file at a URL cannot be read.
    """
    if not is_url(path):
        return os.path.isfile(path)
    import tensorflow as tf

    with _errors_as_oserror(path, "read"):
        return tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path)


def read(file: str) -> bytes:
    """Return the content of a file.

    Raises:
      OSError: the file cannot be read.
    """
    with opened(file) as stream:
        content: bytes = stream.read()
    return content


@contextlib.contextmanager
def opened(file: str) -> Iterator[Any]:
    """Open a file to read its bytes; yield an object with the method `read`.

    Raises:
      OSError: the file cannot be read.
    """
    if not is_url(file):
        with open(file, "rb") as local:
            yield local
        return
    import tensorflow as tf

    with _errors_as_oserror(file, "read"), tf.io.gfile.GFile(file, "rb") as remote:
        yield remote


def write(file: str, content: bytes) -> None:
    """Write a file into an existing folder, in place of an earlier one.

    Raises:
      OSError: the file cannot be written.
    """
    if not is_url(file):
        with open(file, "wb") as local:
            local.write(content)
        return
    import tensorflow as tf

    with _errors_as_oserror(file, "written"), tf.io.gfile.GFile(file, "wb") as remote:
        remote.write(content)


@contextlib.contextmanager
def _errors_as_oserror(path: str, action: str) -> Iterator[None]:
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(f"{path} cannot be {action}: {str(error).splitlines()[0]}") from error
