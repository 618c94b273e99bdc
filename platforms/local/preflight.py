"""The checks in the process of a local run: credentials, models, golden sentences, GPUs, input.

These checks read files and import TensorFlow. The fast checks are those of
`platforms.local.folders.prepare`.
"""

from __future__ import annotations

import os

from components.run_report.history import last_settings
from components.serving_check.golden import read_golden
from core import storage
from core.errors import ConfigError, InputError
from core.metadata import last_execution, open_store
from core.storage import is_bucket
from pipeline.chosen_model import check_model
from pipeline.config import PipelineConfig
from pipeline.destinations import destination_paths
from pipeline.inputs import input_files, read_options
from pipeline.selected_nodes import node_ids
from platforms.beam import check_beam_args
from preprocessing.labels import model_labels
from preprocessing.reading.labels import two_scales
from preprocessing.reading.layouts import decide_layouts, input_scale
from serving.versions import complete_versions
from trainer_module.cluster import resources


def check_run(config: PipelineConfig) -> None:
    """Check what a run reads: credentials, earlier models, golden sentences, GPUs and the input.

    Args:
      config: the settings of the run, for which `platforms.local.folders.prepare` was called.

    Raises:
      ConfigError: there are no credentials for a bucket, the destination has the models of another
        pipeline, `paths.root` has outputs of runs that `paths.metadata` does not contain, a setting
        does not fit the model, the GPUs or Beam, or a folder of the settings cannot be read.
      InputError: an input file or the golden sentences cannot be read or have a wrong layout, or
        the labels fit both the scale of the served model and another one.
    """
    paths = {f"paths.{key}": path for key, path in config.paths.model_dump().items()}
    paths |= destination_paths(config)
    paths["data.input_base"] = config.data.input_base or ""
    for key, path in paths.items():
        if is_bucket(path):
            # The import of Google's client takes a while.
            from platforms.google_credentials import find_credentials

            find_credentials(key, path)
    _names(config.paths.checkpoints, "paths.checkpoints")
    _check_outputs_are_known(config)
    _check_same_pipeline(config)
    read_golden(config.serving_check.golden, read_options(config).classes)
    try:
        resources.check_devices(config.training, os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    check_model(config)
    check_beam_args(config)
    _check_labels(config)


def _check_labels(config: PipelineConfig) -> None:
    """Check that the input can be read, and that its labels have the scale of the served model.

    The files of one run may contain only a part of a scale, and then fit another one: 1 and 2 of
    1 to 5 stars. A model that is trained and compared with the other meanings would be pushed.

    Raises:
      InputError: an input file cannot be read or has a wrong layout, or its labels have another
        scale than the served model, and fit that of the model too.
      ConfigError: `paths.serving` cannot be read.
    """
    files, options = input_files(config).files, read_options(config)
    found = input_scale(decide_layouts(files, options))
    served = _served_scale(config) if found else ""
    if served in ("", found):
        return
    if input_scale(decide_layouts(files, options, served)) == served:
        raise InputError(f"data.input_base: {two_scales(found, served)}")


def _served_scale(config: PipelineConfig) -> str:
    """Return the scale of the labels of the served model; empty if it is unknown.

    Raises:
      ConfigError: `paths.serving` cannot be read.
    """
    serving = destination_paths(config).get("paths.serving")
    if not serving:
        return ""
    try:
        newest = next(complete_versions(serving), None)
        return model_labels(newest).label_scale if newest else ""
    except InputError:  # The run itself reports a damaged model.
        return ""
    except OSError as error:
        raise ConfigError(f"paths.serving: {serving} cannot be read: {error}") from None


def _check_outputs_are_known(config: PipelineConfig) -> None:
    """Check that this run writes into no folder with outputs of an earlier run.

    TFX names the folder of an output `NODE/OUTPUT/EXECUTION`, with the id of the execution in ML
    Metadata. A database without the earlier runs counts from 1 again, so the new outputs would be
    beside and in place of the earlier ones.

    Raises:
      ConfigError: there are outputs of executions that are not in ML Metadata.
    """
    root, location = config.paths.root, config.paths.metadata
    last = last_execution(open_store(location)) if os.path.exists(location) else 0
    for node in node_ids(config):
        for output in _names(os.path.join(root, node), "paths.root"):
            folder = os.path.join(root, node, output)
            numbers = [int(name) for name in _names(folder, "paths.root") if name.isdecimal()]
            if numbers and max(numbers) > last:
                raise ConfigError(
                    f"paths.root: {folder}/{max(numbers)} is the output of a run that is not in "
                    f"paths.metadata ({location}), and this run might overwrite it; set "
                    "paths.metadata to the file with that run, or paths.root to another folder"
                )


def _names(folder: str, key: str) -> list[str]:
    """Return the names in a folder that are not hidden; an empty list if it is no folder.

    Args:
      folder: the folder, local or at a URL.
      key: the setting that contains the folder, for the message of the error.

    Raises:
      ConfigError: the folder cannot be read.
    """
    try:
        return [name for name in storage.names(folder) if not name.startswith(".")]
    except NotADirectoryError:
        return []
    except OSError as error:
        raise ConfigError(f"{key}: {folder} cannot be read: {error}") from None


def _check_same_pipeline(config: PipelineConfig) -> None:
    """Check that this run does not replace the served model of another pipeline.

    A command without `--config` runs the sample, perhaps in the folder of a user's own runs.

    Raises:
      ConfigError: the last run with this destination was one of another pipeline.
    """
    location = config.paths.metadata
    destination = destination_paths(config)
    if not destination or not os.path.exists(location):
        return
    before = last_settings(open_store(location), location, destination)
    if not before:
        return
    data = before["data"]["input_base"]
    if before["name"] != config.name or (data and not config.data.input_base):
        now = config.data.input_base or "the sample"
        key, path = next(iter(destination.items()))
        raise ConfigError(
            f"{key}: {path} contains models of {before['name']} on {data or 'the sample'}, and "
            f"this is a run of {config.name} on {now}; pass --config FILE for other settings, or "
            "set paths.root to another folder"
        )
