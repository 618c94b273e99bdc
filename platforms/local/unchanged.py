"""Find out whether a run would only repeat the last one, without importing TFX or TensorFlow.

TFX's local engine also finds this out: it looks up each component in ML Metadata. But it first
imports TensorFlow, Beam and all of TFX's components, even if no component will run.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from absl import logging

from components.destination import make_destination
from components.run_report import history
from core.code_version import all_code
from core.errors import ConfigError, InputError
from core.metadata import open_store
from core.storage import is_url
from pipeline.chosen_model import model_file
from pipeline.config import PipelineConfig, recorded_settings
from pipeline.destinations import destination_json
from pipeline.inputs import input_fingerprint
from pipeline.project import component_files


def fingerprint(config: PipelineConfig, files: str | None = None) -> str | None:
    """Return a digest of everything that a run would read now: code, settings and input.

    The code includes that of the user's project.

    Args:
      config: the settings of the run.
      files: the value of `pipeline.inputs.input_fingerprint`; None: this function computes it.

    Returns:
      None if a run with these settings must never be skipped, if an input file cannot be read, or
      if a folder is in a bucket, which this module cannot list.
    """
    folders = (config.paths.root, config.data.input_base or "")
    # A warm start continues from the model that the last run pushed.
    if not config.cache or config.training.warm_start or any(map(is_url, folders)):
        return None
    try:
        golden = config.serving_check.golden
        sentences = Path(golden).read_bytes() if golden else b""
        own = [model_file(config), *component_files(config.project)]
        files = files or input_fingerprint(config)
    except (OSError, InputError, ConfigError):  # The run reports what is wrong with the file.
        return None
    golden_digest = hashlib.sha256(sentences).hexdigest()
    project = [f"{file.path}\0{file.text}" for file in own if file]
    return _digest(all_code(), recorded_settings(config), golden_digest, files, *project)


def record(store: Any, run_id: str, config: PipelineConfig, before: str | None) -> None:
    """Record the state after a run in ML Metadata, unless the run must never be skipped.

    Without a recorded state, the next run is not skipped. So a destination that cannot be read now
    does not fail a run that is complete.

    Args:
      store: ML Metadata with the run.
      run_id: the id of the run.
      config: the settings of the run.
      before: the `fingerprint` before the run.
    """
    if before is None:
        return
    try:
        served = make_destination(destination_json(config)).state()
    except (OSError, InputError) as error:
        logging.warning("The next run will not be skipped: %s", error)
        return
    if served is not None:
        history.record(store, run_id, history.STATE, _digest(before, served))


def find_unchanged(config: PipelineConfig) -> history.Run | None:
    """Return the last run if a new run with these settings would only repeat it, else None.

    A new run only repeats the last run under these conditions: the last run finished, nothing that
    it read has changed, all of its outputs exist, and the destination of the push is in the same
    state as after the run.

    Raises:
      ConfigError: `paths.metadata` cannot be opened.
      InputError: the recorded outcome of a run cannot be read.
    """
    if not os.path.exists(config.paths.metadata):
        return None
    try:
        served = make_destination(destination_json(config)).state()
    except (OSError, InputError):  # The run reports what is wrong with the destination.
        return None
    before = None if served is None else fingerprint(config)
    if before is None or served is None:
        return None
    store = open_store(config.paths.metadata)
    run_id, state = history.last_state(store)
    if state != _digest(before, served):
        return None
    [run] = history.read_runs(store, run_id)
    outputs = [artifact for found in run.outputs.values() for artifact in found.values()]
    if run.outcome is None or not all(map(history.exists, outputs)):
        return None
    return run if os.path.exists(run.outcome.report) else None


def _digest(*parts: str) -> str:
    # A path on this machine may not be valid UTF-8.
    return hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
