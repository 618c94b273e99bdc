"""Kubeflow's cache for ReviewExampleGen, and therefore for every step that depends on its Examples.

The cache key of Kubeflow consists of the parameters of a step and the ids of its input artifacts.
Kubeflow runs no driver of an ExampleGen, so the key does not depend on the raw files, and the
compiled pipeline disables the cache for ReviewExampleGen. Its Examples are then a new artifact in
every run, so no later step is a cache hit either. A submission that can list the files adds their
fingerprint to the step's parameters and enables the cache.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from components.review_example_gen.inputs import OPTIONS_KEY, SAMPLE, Options, input_folder
from core.errors import InputError
from pipeline.config import PipelineConfig
from pipeline.inputs import input_files
from platforms.submission import Package
from preprocessing.reading.files import find_sources, fingerprint


def enable_input_cache(config: PipelineConfig, package: Package, values: Mapping[str, Any]) -> None:
    """Enable the cache for ReviewExampleGen in `package`, if this machine can list the input."""
    if not config.cache:
        return
    base = values.get("input_base") or config.data.input_base or SAMPLE
    try:
        found = input_fingerprint(config, base)
    except InputError as error:
        # Possibly only the pods can access the input.
        logging.getLogger(__name__).warning(
            "The input cannot be listed from this machine, so the run reads it again: %s", error
        )
        return
    task = package.spec["root"]["dag"]["tasks"]["ReviewExampleGen"]
    value = task["inputs"]["parameters"][OPTIONS_KEY]["runtimeValue"]
    options = Options.model_validate_json(value["constant"])
    changed = options.model_copy(update={"input_fingerprint": found})
    value["constant"] = changed.model_dump_json()
    task["cachingOptions"] = {"enableCache": True}


def input_fingerprint(config: PipelineConfig, input_base: str) -> str:
    """Return a hash of the input files: their groups, paths, sizes and modification times.

    Raises:
      InputError: the files cannot be listed from this machine.
    """
    folder = input_folder(input_base)
    sources = find_sources(folder, input_files(config)[1])
    if input_base == SAMPLE:
        # Copies of the sample differ in their modification time, not in their content.
        sources = [source._replace(modified=0.0) for source in sources]
    return fingerprint(folder, sources)
