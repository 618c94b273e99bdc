"""The identity of a SavedModel, which distinguishes it from every other model."""

from __future__ import annotations

import hashlib
import os

from core.errors import InputError
from serving.versions import MODEL_FILE, VARIABLES_INDEX


def identity(model: str) -> str:
    """Return the identity of a SavedModel, 16 hexadecimal digits.

    All copies of a model have the same identity, and different models have different ones.

    Args:
      model: its folder, or a URL of a file system that TensorFlow reads, such as gs://.

    Raises:
      InputError: the model is missing or incomplete.
      OSError: a local file cannot be read.
      tensorflow.errors.OpError: a file at a URL cannot be read.
    """
    digest = hashlib.sha256()
    # The index contains the checksums of all weights, and `assets` the vocabulary.
    for name in (MODEL_FILE, VARIABLES_INDEX):
        content = _read(os.path.join(model, name))
        if content is None:
            raise InputError(f"{model} is no complete model: {name} is missing")
        digest.update(content)
    assets = os.path.join(model, "assets")
    for name in _names(assets):
        digest.update(name.encode() + (_read(os.path.join(assets, name)) or b""))
    return digest.hexdigest()[:16]


def _read(path: str) -> bytes | None:
    """Return the content of a file; None if there is none."""
    # A local file is read without TensorFlow, which takes seconds to import.
    if "://" not in path:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            return file.read()
    import tensorflow as tf

    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path, "rb") as remote:
        content: bytes = remote.read()
    return content


def _names(folder: str) -> list[str]:
    """Return the sorted names in a folder; none if it is missing."""
    if "://" not in folder:
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    import tensorflow as tf

    if not tf.io.gfile.isdir(folder):
        return []
    # A gs:// listing contains the folder itself as an empty name.
    return sorted(filter(None, tf.io.gfile.listdir(folder)))
