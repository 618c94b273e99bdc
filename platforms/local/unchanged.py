"""Find out whether a run would only repeat the last one, without importing TFX or TensorFlow.

TFX's local engine finds the same out by looking up each component in ML Metadata. To do so it
imports TensorFlow, Beam and all of TFX's components, whether or not one of them will run.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from absl import logging

from components.destination import make_destination
from components.run_report import history
from core.errors import InputError
from core.metadata import open_store
from pipeline.code_version import all_code
from pipeline.config import PipelineConfig, recorded_settings
from pipeline.destinations import destination_json
from pipeline.inputs import input_fingerprint


def fingerprint(config: PipelineConfig, of_input: str | None = None) -> str | None:
    """Return a digest of everything that a run reads, before the run: code, settings and input.

    Args:
      config: the settings of the run.
      of_input: the `input_fingerprint`, which is the cache key of the files too; None: it is
        computed here.

    Returns:
      None if a run with these settings must never be skipped, if an input file cannot be read, or
      if a folder is in a bucket, which this module cannot list.
    """
    folders = (config.paths.root, config.data.input_base or "")
    # A warm start continues from the model that the last run pushed.
    if not config.cache or config.training.warm_start or any("://" in each for each in folders):
        return None
    try:
        golden = config.serving_check.golden
        sentences = Path(golden).read_bytes() if golden else b""
        files = of_input or input_fingerprint(config)
    except (OSError, InputError):  # The run reports what is wrong with the file.
        return None
    of_golden = hashlib.sha256(sentences).hexdigest()
    return _digest(all_code(), recorded_settings(config), of_golden, files)


def record(store: Any, run_id: str, config: PipelineConfig, before: str | None) -> None:
    """Record the state after a run in ML Metadata, unless the run must never be skipped.

    Without a state, the next run is not skipped. So a destination that cannot be read now does not
    fail a run that is complete.

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

    This is so if the last run finished, nothing that it read has changed, all of its outputs exist,
    and the destination of the push is in the same state as after the run.
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
    state = history.last_state(store)
    if state is None or state[1] != _digest(before, served):
        return None
    [run] = history.read_runs(store, state[0])
    outputs = [artifact for of_node in run.outputs.values() for artifact in of_node.values()]
    if run.outcome is None or not all(map(history.exists, outputs)):
        return None
    return run if os.path.exists(run.outcome.report) else None


def _digest(*parts: str) -> str:
    # A path on this machine may be no UTF-8.
    return hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
