"""The checks in the process of a local run: credentials, models, golden sentences, GPUs, input.

These checks read files and import TensorFlow. The fast checks are those of
`platforms.local.folders.prepare`.
"""

from __future__ import annotations

import os

from components.run_report.history import last_settings
from components.serving_check.golden import read_golden
from core import storage
from core.errors import ConfigError
from core.metadata import last_execution, open_store
from pipeline.chosen_model import check_model
from pipeline.config import PipelineConfig
from pipeline.destinations import destination_paths
from pipeline.inputs import input_files, read_options
from pipeline.selected_nodes import node_ids
from platforms.checks import is_bucket
from preprocessing.reading.layouts import decide_layouts
from trainer_module.cluster import resources


def check_run(config: PipelineConfig) -> None:
    """Check what a run reads: credentials, earlier models, golden sentences, GPUs and the input.

    Args:
      config: the settings of the run, for which `platforms.local.folders.prepare` was called.

    Raises:
      ConfigError: there are no credentials for a bucket, the destination has the models of another
        pipeline, `paths.root` has outputs of runs that `paths.metadata` does not contain, a setting
        does not fit the model or the GPUs, or `paths.metadata` cannot be opened.
      InputError: an input file or the golden sentences cannot be read or have a wrong layout.
    """
    paths = {f"paths.{key}": path for key, path in config.paths.model_dump().items()}
    paths |= destination_paths(config)
    paths["data.input_base"] = config.data.input_base or ""
    for key, path in paths.items():
        if is_bucket(path):
            # The import of Google's client takes a while.
            from platforms.google_cloud.api import find_credentials

            find_credentials(key, path)
    _check_outputs_are_known(config)
    _check_same_pipeline(config)
    read_golden(config.serving_check.golden, read_options(config).classes)
    try:
        resources.check_devices(config.training, os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    check_model(config)
    decide_layouts(input_files(config).files, read_options(config))


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
        for output in _names(os.path.join(root, node)):
            folder = os.path.join(root, node, output)
            numbers = [int(name) for name in _names(folder) if name.isdecimal()]
            if numbers and max(numbers) > last:
                raise ConfigError(
                    f"paths.root: {folder}/{max(numbers)} is the output of a run that is not in "
                    f"paths.metadata ({location}), and this run might overwrite it; set "
                    "paths.metadata to the file with that run, or paths.root to another folder"
                )


def _names(folder: str) -> list[str]:
    """Return the names in a folder that are not hidden; an empty list if it is no folder.

    Raises:
      ConfigError: the folder cannot be read.
    """
    try:
        return [name for name in storage.names(folder) if not name.startswith(".")]
    except NotADirectoryError:
        return []
    except OSError as error:
        raise ConfigError(f"paths.root: {folder} cannot be read: {error}") from None


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
    before = last_settings(open_store(location), destination)
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
