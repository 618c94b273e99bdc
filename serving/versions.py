"""The versions in a serving folder, as the Pusher writes them and TensorFlow Serving reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

MODEL_FILE = "saved_model.pb"
"""The file of a model that the Pusher copies last."""


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
    numbers = [name for name in _names(folder) if re.fullmatch("[0-9]+", name)]
    for name in sorted(numbers, key=int, reverse=True):
        path = f"{folder.rstrip('/')}/{name}"
        if is_complete(path):
            yield path


def is_complete(model: str) -> bool:
    """Return whether the path or URL `model` holds a complete SavedModel.

    Raises:
      OSError: a URL cannot be read.
    """
    return bool(_exists(f"{model}/{MODEL_FILE}"))


def _names(folder: str) -> list[str]:
    if _is_local(folder):
        return os.listdir(folder) if os.path.isdir(folder) else []
    import tensorflow as tf

    try:
        # A gs:// listing gives folders a slash at the end.
        return [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]
    except tf.errors.NotFoundError:
        return []
    except tf.errors.OpError as error:
        raise OSError(f"{folder} cannot be listed: {str(error).splitlines()[0]}") from error


def _exists(path: str) -> bool:
    if _is_local(path):
        return os.path.exists(path)
    import tensorflow as tf

    try:
        return bool(tf.io.gfile.exists(path))
    except tf.errors.OpError as error:
        raise OSError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _is_local(path: str) -> bool:
    """Return whether `path` can be read without TensorFlow, which takes seconds to import."""
    return "://" not in path
