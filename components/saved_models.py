"""The identity of a SavedModel, and a copy of it that is never half visible."""

from __future__ import annotations

import hashlib
import os

from tfx.dsl.io import fileio

from serving.versions import MODEL_FILE

# A file with hashes of graph and weights, which TensorFlow writes to every SavedModel.
_FINGERPRINT = "fingerprint.pb"


def identity(model: str) -> str:
    """Return 16 hex digits, the same for each copy of a SavedModel, others for another model."""
    paths = [os.path.join(model, _FINGERPRINT)]
    if not fileio.exists(paths[0]):  # A TensorFlow older than 2.12 saved the model.
        # The index contains the checksums of all weights.
        index = os.path.join(model, "variables", "variables.index")
        paths = [os.path.join(model, MODEL_FILE), *([index] if fileio.exists(index) else [])]
    digest = hashlib.sha256()
    for path in paths:
        with fileio.open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


def copy_model(source: str, target: str) -> None:
    """Copy a SavedModel to the folder `target`.

    Servers take the model file as the sign of a complete model. So this file is written under
    another name, and gets its name when all files are complete.
    """
    source, target = source.rstrip("/"), target.rstrip("/")
    for folder, _, names in fileio.walk(source):
        copy = f"{target}{folder[len(source) :]}"
        fileio.makedirs(copy)
        for name in names:
            file = os.path.join(folder, name)
            if file != f"{source}/{MODEL_FILE}":
                fileio.copy(file, os.path.join(copy, name), overwrite=True)
    partial = f"{target}/{MODEL_FILE}.partial"
    fileio.copy(f"{source}/{MODEL_FILE}", partial, overwrite=True)
    fileio.rename(partial, f"{target}/{MODEL_FILE}", overwrite=True)
