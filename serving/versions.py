"""The versions in a serving folder, as the Pusher writes them and TensorFlow Serving reads them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

from core.errors import InputError

MODEL_FILE = "saved_model.pb"
"""The file of a model that the Pusher copies last."""


class NoModelError(InputError):
    """A serving folder without a pushed model. The message names the folder and the remedy."""

    def __init__(self, serving: str):
        super().__init__(
            f"no model has been pushed to {serving} yet; `amazon-reviews run` trains and pushes one"
        )


def versions(folder: str) -> Iterator[str]:
    """Yield the paths of the complete models under `folder`, newest first.

    A version is a folder whose name is a number; the highest number is the newest version. Other
    names and incomplete versions are skipped.

    Args:
      folder: a local folder or a URL of a file system that TensorFlow reads, such as gs://. A
        missing folder has no versions.

    Raises:
      OSError: the folder cannot be listed, or a version cannot be read.
    """
    for name in sorted(_numbers(folder), key=int, reverse=True):
        path = f"{folder.rstrip('/')}/{name}"
        if is_complete(path):
            yield path


def next_version(folder: str) -> int:
    """Return the number of a new version: the seconds since 1970, or the newest + 1 if greater.

    Incomplete versions count, because TensorFlow Serving may load them later.

    Raises:
      OSError: the folder cannot be listed.
    """
    return max(int(time.time()), max(map(int, _numbers(folder)), default=0) + 1)


def is_complete(model: str) -> bool:
    """Return whether the path or URL `model` holds a complete SavedModel.

    Raises:
      OSError: it cannot be read.
    """
    try:
        return MODEL_FILE in _names(model)
    except NotADirectoryError:
        return False


def _numbers(folder: str) -> list[str]:
    # TensorFlow Serving ignores a number that exceeds an int64.
    return [each for each in _names(folder) if re.fullmatch("[0-9]+", each) and int(each) < 1 << 63]


def _names(folder: str) -> list[str]:
    """Return the names in a folder; none if it is missing."""
    # A local folder is listed without TensorFlow, which takes seconds to import.
    if "://" not in folder:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []
    import tensorflow as tf

    try:
        # `listdir` raises NotFoundError for every folder that it cannot read, `stat` does not.
        tf.io.gfile.stat(folder)
        # A gs:// listing gives folders a slash at the end.
        return [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]
    except tf.errors.NotFoundError:
        return []
    except tf.errors.OpError as error:
        raise OSError(f"{folder} cannot be listed: {str(error).splitlines()[0]}") from error
