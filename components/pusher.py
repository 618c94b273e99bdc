"""VersionPusher: copies a blessed model to a new version, which is newer than all others.

A rollback pushes a copy of an earlier version. All servers load the newest version, so a rollback
works for each of them as any push does. A file in the copy names the version that it is a copy of,
and the version that it replaces.
"""

from __future__ import annotations

import abc
import json
import os
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging
from tfx import types
from tfx.components import Pusher
from tfx.components.pusher import executor as tfx_executor
from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio
from tfx.proto import pusher_pb2
from tfx.types import BaseChannel, artifact_utils, standard_component_specs
from tfx.utils import io_utils, proto_utils

from components.saved_models import copy_model, identity
from core.errors import InputError
from serving.versions import next_version, versions

_ROLLBACK = "assets.extra/rollback.json"
"""A file of a version. SavedModels have such a folder for files that TensorFlow does not read."""


class Version(NamedTuple):
    """A version in a serving folder.

    Attributes:
      path: its folder.
      original: the name of the version that it is a copy of, after a rollback; else its own name.
      replaced: the name of the version that was rolled back, after a rollback; else empty.
    """

    path: str
    original: str
    replaced: str = ""

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


class BlessedExecutor(tfx_executor.Executor, abc.ABC):
    """Pushes the model by `push` if it has both blessings; a missing one is not a blessing."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's Pusher, and `push` for the errors."""
        self._log_startup(input_dict, output_dict, exec_properties)
        pushed = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.PUSHED_MODEL_KEY]
        )
        if not self.CheckBlessing(input_dict):
            self._MarkNotPushed(pushed)
            return
        destination, version = self.push(input_dict, pushed.uri, exec_properties)
        self._MarkPushed(pushed, pushed_destination=destination, pushed_version=version)
        logging.info("Pushed to %s: version %s", destination, version)

    @abc.abstractmethod
    def push(
        self,
        input_dict: dict[str, list[types.Artifact]],
        uri: str,
        exec_properties: dict[str, Any],
    ) -> tuple[str, str]:
        """Push the model; return the destination and the version.

        Args:
          input_dict, exec_properties: those of `Do`.
          uri: the folder of the `PushedModel`.
        """

    def CheckBlessing(self, input_dict: dict[str, list[types.Artifact]]) -> bool:
        """Return whether the model has both blessings; TFX ignores a missing one."""
        keys = (
            standard_component_specs.MODEL_BLESSING_KEY,
            standard_component_specs.INFRA_BLESSING_KEY,
        )
        return all(input_dict.get(key) for key in keys) and bool(super().CheckBlessing(input_dict))


class Executor(BlessedExecutor):
    """Copies the model to a new version, unless it is the newest version already."""

    def push(
        self,
        input_dict: dict[str, list[types.Artifact]],
        uri: str,
        exec_properties: dict[str, Any],
    ) -> tuple[str, str]:
        """See `BlessedExecutor`.

        Raises:
          InputError: no version can be newer than the newest one, or the model was rolled back.
        """
        destination = pusher_pb2.PushDestination()
        proto_utils.json_to_proto(
            exec_properties[standard_component_specs.PUSH_DESTINATION_KEY], destination
        )
        serving = destination.filesystem.base_directory
        model = self.GetModelPath(input_dict)
        version = next(versions(serving), None)
        # A retry of a push whose end was not recorded pushes no second copy.
        if version is None or identity(version) != identity(model):
            _check_not_rolled_back(model, serving)
            version = _push(model, serving)
        io_utils.copy_dir(model, uri)
        return version, os.path.basename(version)


class VersionPusher(Pusher):
    """Copies a model that has both blessings to a new version.

    TFX's own Pusher names a version by the clock alone. After a change of the clock, an older model
    would stay the newest version, and in the same second the Pusher would copy nothing.

    Args:
      model: the SavedModel.
      model_blessing: the Evaluator's blessing of the model.
      infra_blessing: the ServingCheck's blessing of the model.
      serving_dir: the folder of all versions.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        infra_blessing: BaseChannel,
        serving_dir: str,
    ):
        folder = pusher_pb2.PushDestination.Filesystem(base_directory=serving_dir)
        super().__init__(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            push_destination=pusher_pb2.PushDestination(filesystem=folder),
        )


def pushed_versions(serving: str) -> list[Version]:
    """Return the complete versions, the newest first, which is the served one."""
    found = []
    for path in versions(serving):
        file = os.path.join(path, _ROLLBACK)
        record: dict[str, str] = {}
        if fileio.exists(file):
            with fileio.open(file) as stream:
                record = json.loads(stream.read())
        found.append(Version(path, **{"original": os.path.basename(path), **record}))
    return found


def rolled_back(found: list[Version]) -> set[str]:
    """Return the names of the versions that were rolled back and are not served again since."""
    names: set[str] = set()
    for version in reversed(found):
        names.discard(version.original)
        if version.replaced:
            names.add(version.replaced)
    return names


def roll_back(serving: str, name: str | None = None) -> tuple[Version, str]:
    """Serve an earlier version again, by a push of a copy.

    Args:
      serving: the folder of all versions.
      name: the version; None: the one that was pushed before the served one.

    Returns:
      The version, and the folder of its copy.

    Raises:
      InputError: there is no such version, or it is served.
    """
    found = pushed_versions(serving)
    pushed = [version for version in found if not version.replaced]
    served = found[0].original if found else ""
    names = [version.name for version in pushed]
    name = version_to_serve(names, rolled_back(found), served, name, serving)
    [chosen] = [version for version in pushed if version.name == name]
    return chosen, _push(chosen.path, serving, {"original": name, "replaced": served})


def version_to_serve(
    pushed: list[str], undone: set[str], served: str | None, name: str | None, place: str
) -> str:
    """Return the name of the version that a rollback serves.

    Args:
      pushed: the names of the pushed versions, the newest first.
      undone: those of them that were rolled back, which are chosen last.
      served: the one that is served.
      name: the one that the user names; None: the one that was pushed before the served one.
      place: the place of the versions, for the message.

    Raises:
      InputError: there is no such version, or it is served.
    """
    earlier = pushed[pushed.index(served) + 1 :] if served in pushed else []
    name = name or min(earlier, key=undone.__contains__, default=None)
    if not pushed:
        raise InputError(f"{place}: no pushed model; `amazon-reviews run` pushes one")
    if name is None:
        problem = f"no model was pushed before version {served}, which is served"
    elif name == served:
        problem = f"version {name} is served already"
    elif name not in pushed:
        problem = f"no version {name}"
    else:
        return name
    raise InputError(f"{place}: {problem}; `amazon-reviews models` lists the versions")


def rolled_back_error(model: str, name: str) -> InputError:
    """Return the error of a push of a model that was rolled back."""
    return InputError(
        f"the model is {model}, which was rolled back, so it is not pushed again; "
        f"`amazon-reviews rollback {name}` serves it again"
    )


def _check_not_rolled_back(model: str, serving: str) -> None:
    found = pushed_versions(serving)
    undone, own = rolled_back(found), identity(model)
    for version in found:
        if version.name in undone and identity(version.path) == own:
            raise rolled_back_error(f"version {version.name} in {serving}", version.name)


def _push(model: str, serving: str, rollback: dict[str, str] | None = None) -> str:
    """Copy the model to a new version; return its folder."""
    fileio.makedirs(serving)
    while True:
        version = f"{serving.rstrip('/')}/{next_version(serving)}"
        try:
            tf.io.gfile.mkdir(version)
        except tf.errors.AlreadyExistsError:  # Another run has just pushed a model.
            continue
        if rollback:
            fileio.makedirs(os.path.join(version, os.path.dirname(_ROLLBACK)))
            with fileio.open(os.path.join(version, _ROLLBACK), "w") as file:
                file.write(json.dumps(rollback))
        copy_model(model, version)
        return version
