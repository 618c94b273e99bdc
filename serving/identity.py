"""The identity of a SavedModel, which distinguishes it from every other model."""

from __future__ import annotations

import hashlib
import os

from core import storage
from core.digests import GRAPH_DIGEST
from core.errors import InputError
from serving.versions import MODEL_FILE, VARIABLES_INDEX


def identity(model: str) -> str:
    """Return the identity of a SavedModel, 16 hexadecimal digits.

    All copies of a model have the same identity, and so has the same model that another process
    exports. Different models have different ones.

    Args:
      model: its folder, or a URL of a file system that TensorFlow reads, such as gs://.

    Raises:
      InputError: the model is missing or incomplete.
      OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    # The index contains the checksums of all weights. The vocabulary is in `assets`.
    for name in (MODEL_FILE, VARIABLES_INDEX):
        file = os.path.join(model, name)
        if not storage.is_file(file):
            raise InputError(f"{model} is not a complete model: {name} is missing")
        # The bytes of the graph contain numbers that depend on what the process did before.
        graph = os.path.join(model, GRAPH_DIGEST)
        if name == MODEL_FILE and storage.is_file(graph):
            file = graph
        digest.update(storage.read(file))
    assets = os.path.join(model, "assets")
    for name in sorted(storage.names(assets)):
        file = os.path.join(assets, name)
        digest.update(name.encode())
        if storage.is_file(file):
            digest.update(storage.read(file))
    return digest.hexdigest()[:16]
