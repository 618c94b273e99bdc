"""The folder `paths.serving` as a destination: one subfolder for each version of the model.

A push copies the model to a new version, which is newer than all others. A rollback pushes a copy
of an earlier version. All servers load the newest version, so they handle a rollback like a push.

Only the methods that require TFX and TensorFlow import them, because commands list the models and
read the state without them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from absl import logging

from components.destination import (
    DAMAGED,
    ROLLED_BACK,
    SERVED,
    Destination,
    Push,
    PushedModel,
)
from core import storage
from core.digests import is_unchanged
from core.errors import InputError
from core.storage import is_url
from serving.identity import identity
from serving.versions import MODEL_FILE, is_complete, next_version, push_time, versions

_ROLLBACK = "assets.extra/rollback.txt"
"""The file that marks a version as the copy of a rollback, see `_Rollback`."""


class _Rollback(NamedTuple):
    """The content of _ROLLBACK as JSON.

    The fields are empty in a file of an earlier version of this code, which is no JSON.
    """

    copied: str = ""
    """The version that is served again."""
    replaced: str = ""
    """The version that was served before, which may have been deleted since; empty if none was."""
    content: str = ""
    """The `identity` of the model that was served before; empty if none was."""


class ServingFolder(Destination):
    """A folder of versions. The served one is the newest version that a server can load.

    All methods raise OSError or tensorflow.errors.OpError if a file cannot be read or written.

    Args:
      serving: a local folder, or a URL of a file system that TensorFlow reads, such as gs://. A
        missing folder has no versions.
    """

    setting = "paths.serving"
    repair = "delete this folder to compare with the version before it"

    def __init__(self, serving: str):
        self.location = serving

    def push(self, model: str, uri: str, reference: str | None = None) -> Push:
        """Push a SavedModel, and copy it to the folder `uri` of the artifact.

        A model that is the newest version already is not copied to the serving folder again.

        Args:
          model: the folder of the SavedModel, or its URL; see `saved_models.trained_model`.
          uri: the folder or the URL of the artifact `pushed_model`.
          reference: the file REFERENCE_FILE of its evaluation, which the version keeps in
            `assets.extra`; None: it keeps none.

        Raises:
          InputError: the model was rolled back, or no version can follow the newest one.
        """
        from components.saved_models import add_missing, copy_folder
        from serving.drift.reference import KEPT_FILE

        version, content = self.newest(), identity(model)
        is_new = version is None or identity(version) != content
        if is_new:
            self.check_not_rolled_back(content)
        # A run that fails here, such as on a full disk, serves no other model.
        copy_folder(model, uri)
        if version is None or is_new:
            version = self._copy(model, reference=reference)
        elif reference:  # An earlier version of this code may have pushed the model.
            add_missing(reference, os.path.join(version, KEPT_FILE))
        return Push(version, os.path.basename(version))

    def newest(self) -> str | None:
        """Return the path of the newest version that a server can load; None if there is none."""
        for path in versions(self.location):
            if problem := _damage(path):
                logging.warning("%s is damaged, and is not served: %s", path, problem)
            else:
                return path
        return None

    def pushed_models(self) -> list[PushedModel]:
        newest = self.newest()
        served = identity(newest) if newest else ""
        models: dict[str, PushedModel] = {}
        names: dict[str, list[str]] = {}
        undone: set[str] = set()
        damaged: set[str] = set()
        content = ""
        for path in reversed(list(versions(self.location))):
            name = os.path.basename(path)
            replaced = content
            # For the versions before the served one it is enough that their files exist.
            is_before = newest is not None and int(name) <= int(os.path.basename(newest))
            if not is_before or not is_complete(path):
                content = f"{DAMAGED} {name}"
                damaged.add(content)
            else:
                content = identity(path)
            if rollback := _read_rollback(path):
                undone.add(rollback.content or replaced)
            else:  # A run that returned to earlier settings pushed an earlier model again.
                models.pop(content, None)
            undone.discard(content)
            models.setdefault(content, PushedModel(name, push_time(int(name)), content))
            names.setdefault(content, []).append(name)
        states = {
            **dict.fromkeys(undone, ROLLED_BACK),
            **dict.fromkeys(damaged, DAMAGED),
            served: SERVED,
        }
        found = [
            model._replace(
                content="" if model.content in damaged else model.content,
                state=states.get(model.content, ""),
                copies=tuple(name for name in names[model.content] if name != model.name),
            )
            for model in models.values()
        ]
        return found[::-1]

    def folder(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"

    def find_name(self, location: str) -> str | None:
        folder, name = os.path.split(location)
        is_here = folder == self.location.rstrip("/")
        # The folder may have been moved since, or have several paths.
        if is_here or storage.is_file(os.path.join(self.folder(name), MODEL_FILE)):
            return name
        return None

    def served_name(self) -> str | None:
        newest = self.newest()
        return os.path.basename(newest) if newest else None

    def state(self) -> str | None:
        """Return a text that changes if any version is added, replaced, damaged or removed.

        The weights are not read. The text contains the identity of each version, and the names and
        sizes of its files.

        Returns:
          None for a folder that is not on this machine.

        Raises:
          OSError: a file cannot be read.
        """
        if is_url(self.location):
            return None
        return "\0\0".join(map(_content, versions(self.location)))

    def check_not_rolled_back(self, content: str) -> None:
        super().check_not_rolled_back(content)
        if any(model.content == content for model in self.pushed_models()):
            return
        for path in versions(self.location):
            rollback = _read_rollback(path)
            if rollback and rollback.content == content:
                raise InputError(
                    f"the model was version {rollback.replaced} in {self.location}, which was "
                    "rolled back, and is deleted or damaged now, so it is not pushed again; to "
                    f"push it, delete {os.path.join(path, _ROLLBACK)}"
                )

    def _check_loads(self, model: PushedModel) -> None:
        from components.saved_models import check_loads

        check_loads(self.folder(model.name))

    def _serve_again(self, model: PushedModel) -> None:
        newest = self.newest()
        rollback = _Rollback(model.name)
        if newest:
            rollback = _Rollback(model.name, os.path.basename(newest), identity(newest))
        text = json.dumps(rollback._asdict())
        self._copy(self.folder(model.name), texts={_ROLLBACK: f"{text}\n"})

    def _copy(
        self, model: str, *, reference: str | None = None, texts: Mapping[str, str] | None = None
    ) -> str:
        """Copy a model to a new version; return its folder."""
        import tensorflow as tf
        from tfx.dsl.io import fileio

        from components.saved_models import copy_model
        from serving.drift.reference import KEPT_FILE

        fileio.makedirs(self.location)
        while True:
            version = self.folder(str(next_version(self.location)))
            try:
                tf.io.gfile.mkdir(version)
            except tf.errors.AlreadyExistsError:  # Another run has just pushed a model.
                continue
            try:
                copy_model(model, version, {KEPT_FILE: reference} if reference else {}, texts)
            except Exception:
                # An incomplete copy would take the space that a further attempt needs.
                with contextlib.suppress(OSError, tf.errors.OpError):
                    fileio.rmtree(version)
                raise
            return version


def _read_rollback(version: str) -> _Rollback | None:
    """Return the record of a rollback in a version; None if the version is no copy of one.

    Raises:
      OSError: the file cannot be read.
    """
    file = os.path.join(version, _ROLLBACK)
    if not storage.is_file(file):
        return None
    try:
        return _Rollback(**json.loads(storage.read(file)))
    except (ValueError, TypeError):
        return _Rollback()


def _damage(version: str) -> str:
    """Return why a server cannot load a version; empty if it can.

    A version is checked before it is pushed. Therefore only a version that has changed since is
    checked again, with TensorFlow.
    """
    # Servers also refuse a version that has lost a file which its digests do not list.
    if is_complete(version) and is_unchanged(version):
        return ""
    from components.saved_models import check_files

    try:
        check_files(version)
    except InputError as error:
        return str(error)
    return ""


def _content(version: str) -> str:
    """Return a text that changes if a version is replaced, or if a file is removed or cut off."""
    sizes = sorted(
        (os.path.relpath(os.path.join(folder, name), version), os.stat(f"{folder}/{name}").st_size)
        for folder, _, names in os.walk(version)
        for name in names
    )
    return f"{version}\0{identity(version) if is_complete(version) else ''}\0{sizes}"
