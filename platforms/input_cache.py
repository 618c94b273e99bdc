"""The cache of a submitted run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from components.review_example_gen.inputs import OPTIONS_KEY, Options
from core.errors import InputError
from pipeline.config import PipelineConfig
from pipeline.inputs import input_fingerprint
from pipeline.nodes import EXAMPLE_GEN
from platforms.pipeline_spec import escape


def disable_cache(tasks: dict[str, dict[str, Any]]) -> None:
    """Disable the cache for all tasks of a compiled pipeline.

    Args:
      tasks: node id -> JSON of its task, which is changed.
    """
    for task in tasks.values():
        task["cachingOptions"] = {"enableCache": False}


def set_cache(
    config: PipelineConfig, tasks: dict[str, dict[str, Any]], values: Mapping[str, Any]
) -> None:
    """Disable the cache for all tasks, or enable it for ReviewExampleGen.

    The cache key of a cluster consists of the parameters of a step and the ids of its input
    artifacts. The key does not depend on the raw files, so the compiled pipeline disables the cache
    for ReviewExampleGen. The Examples are then a new artifact in every run, so no later step is a
    cache hit either. Therefore this function adds the fingerprint of the files to the parameters of
    the step, if this machine can list the input. Otherwise it logs a warning.

    Args:
      config: the settings of the compiled pipeline.
      tasks: node id -> JSON of its task in the compiled pipeline, which is changed.
      values: parameter of the run -> value, for those that differ from the compiled pipeline.
    """
    if not config.cache:
        disable_cache(tasks)
        return
    try:
        found = input_fingerprint(config, values.get("input_base"), values.get("span"))
    except InputError as error:
        # Perhaps only the steps can access the input. Any other problem is an error of a step.
        logging.getLogger(__name__).warning(
            "The input cannot be read from this machine, so the run reads it again: %s", error
        )
        return
    task = tasks[EXAMPLE_GEN]
    value = task["inputs"]["parameters"][OPTIONS_KEY]["runtimeValue"]
    options = Options.model_validate_json(value["constant"])
    changed = options.model_copy(update={"input_fingerprint": found})
    value["constant"] = escape(changed.model_dump_json())
    task["cachingOptions"] = {"enableCache": True}
