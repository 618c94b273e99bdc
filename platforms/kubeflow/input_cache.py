"""Kubeflow's cache for ReviewExampleGen, and therefore for every step that depends on its Examples.

The cache key of Kubeflow consists of the parameters of a step and the ids of its input artifacts.
Kubeflow runs no driver of an ExampleGen, so the key does not depend on the raw files, and the
compiled pipeline disables the cache for ReviewExampleGen. Its Examples are then a new artifact in
every run, so no later step is a cache hit either. A submission that can list the files adds their
fingerprint to the step's parameters and enables the cache.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from components.review_example_gen.inputs import OPTIONS_KEY, SAMPLE, Options, input_folder
from core.errors import InputError
from pipeline.config import PipelineConfig
from pipeline.inputs import input_files
from platforms.parameters import FIRST_STEP, remove_check
from platforms.submission import Package
from preprocessing.reading.files import find_sources, fingerprint


@contextlib.contextmanager
def file_to_send(
    config: PipelineConfig, package: Package, values: Mapping[str, Any]
) -> Iterator[Path]:
    """Yield the compiled file, or a copy that enables the cache for ReviewExampleGen.

    Args:
      config: the settings of the submission.
      package: the compiled pipeline.
      values: the run's parameters.
    """
    default = package.parameters.get("input_base", {}).get("defaultValue")
    base = values.get("input_base") or default
    spec = None
    if config.cache and base and _has_options(package.spec):
        try:
            spec = _with_fingerprint(package.spec, input_fingerprint(config, base))
        except InputError as error:
            # Possibly only the pods can access the input.
            logging.getLogger(__name__).warning(
                "The input cannot be listed from this machine, so the run reads it again: %s", error
            )
    if spec is None:
        yield package.file
        return
    # The file may have a second document with settings for Kubernetes.
    _, *others = yaml.safe_load_all(package.file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, package.file.name)
        file.write_text(yaml.safe_dump_all([spec, *others]), encoding="utf-8")
        yield file


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


def _has_options(spec: Mapping[str, Any]) -> bool:
    task = spec["root"].get("dag", {}).get("tasks", {}).get(FIRST_STEP, {})
    return OPTIONS_KEY in task.get("inputs", {}).get("parameters", {})


def _with_fingerprint(spec: Mapping[str, Any], fingerprint: str) -> dict[str, Any]:
    changed = copy.deepcopy(dict(spec))
    # The submission has checked the parameters of the run.
    remove_check(changed)
    task = changed["root"]["dag"]["tasks"][FIRST_STEP]
    value = task["inputs"]["parameters"][OPTIONS_KEY]["runtimeValue"]
    options = Options.model_validate_json(value["constant"])
    changed_options = options.model_copy(update={"input_fingerprint": fingerprint})
    value["constant"] = changed_options.model_dump_json()
    task["cachingOptions"] = {"enableCache": True}
    return changed
