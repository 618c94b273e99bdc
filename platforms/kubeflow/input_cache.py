"""Kubeflow's cache for ReviewExampleGen, and so for all that is made of its Examples.

Kubeflow compares the parameters of a step and the ids of its input artifacts. It runs no driver of
an ExampleGen, so it does not see the raw files: the compiled pipeline switches the cache off for
ReviewExampleGen, whose Examples are then a new artifact in every run, for which nothing downstream
is in the cache either. A submission that can list the files puts their fingerprint into the step's
parameters, and switches the cache on.
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
from platforms.package import Package
from preprocessing.reading.find import find_sources, fingerprint

_TASK = "ReviewExampleGen"


@contextlib.contextmanager
def file_to_send(
    config: PipelineConfig, package: Package, values: Mapping[str, Any]
) -> Iterator[Path]:
    """The compiled file, or one with which ReviewExampleGen is answered from the cache if its
    files are those of an earlier run.

    Args:
      config: the settings of the submission.
      package: what was compiled.
      values: the run's parameters.
    """
    default = package.parameters.get("input_base", {}).get("defaultValue")
    base = values.get("input_base") or default
    spec = None
    if config.cache and base and _has_options(package.spec):
        try:
            spec = _with_fingerprint(package.spec, input_fingerprint(config, base))
        except InputError as error:
            # Only the pods see it, perhaps.
            logging.getLogger(__name__).warning(
                "The input cannot be listed from here, so the run reads it again: %s", error
            )
    if spec is None:
        yield package.file
        return
    # Behind the pipeline there may be settings for Kubernetes.
    _, *others = yaml.safe_load_all(package.file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, package.file.name)
        file.write_text(yaml.safe_dump_all([spec, *others]), encoding="utf-8")
        yield file


def input_fingerprint(config: PipelineConfig, input_base: str) -> str:
    """A hash of the files that are read: their groups, paths, sizes and times of change.

    Raises:
      InputError: they cannot be listed from here.
    """
    folder = input_folder(input_base)
    sources = find_sources(folder, input_files(config)[1])
    if input_base == SAMPLE:
        # Each copy of the sample has a time of its own, and all have one content.
        sources = [source._replace(modified=0.0) for source in sources]
    return fingerprint(folder, sources)


def _has_options(spec: Mapping[str, Any]) -> bool:
    task = spec["root"].get("dag", {}).get("tasks", {}).get(_TASK, {})
    return OPTIONS_KEY in task.get("inputs", {}).get("parameters", {})


def _with_fingerprint(spec: Mapping[str, Any], fingerprint: str) -> dict[str, Any]:
    changed = copy.deepcopy(dict(spec))
    task = changed["root"]["dag"]["tasks"][_TASK]
    value = task["inputs"]["parameters"][OPTIONS_KEY]["runtimeValue"]
    options = Options.model_validate_json(value["constant"])
    changed_options = options.model_copy(update={"input_fingerprint": fingerprint})
    value["constant"] = changed_options.model_dump_json()
    task["cachingOptions"] = {"enableCache": True}
    return changed
