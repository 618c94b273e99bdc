"""What the Beam pipelines of several components share."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio

from core.local_beam import make_pipeline

_FILES_PER_UNIT = 8
_RESULTS = "done.json"
Item = TypeVar("Item")


class LocalBeamExecutor(base_beam_executor.BaseBeamExecutor):
    """A Beam executor of TFX whose pipelines run in this process by default.

    Put it before TFX's own executor in the list of base classes.
    """

    def _make_beam_pipeline(self) -> beam.Pipeline:
        if self._make_beam_pipeline_fn is not None:
            return super()._make_beam_pipeline()
        return make_pipeline(self._beam_pipeline_args)


def divide_into_units(items: Sequence[Item], size: int = _FILES_PER_UNIT) -> list[Sequence[Item]]:
    """Divide files, or other items, into units of work of at most this size."""
    count = -(-len(items) // size)
    return [items[number::count] for number in range(count)]


def write_results(pipeline: beam.Pipeline, results: beam.PCollection, folder: str) -> None:
    """Write the elements of `results`, sorted, to a JSON file in `folder`, for `read_results`.

    A file, because the workers may be other processes or machines.
    """
    _ = (
        pipeline
        | "DoneFile" >> beam.Create([os.path.join(folder, _RESULTS)])
        | "WriteDone" >> beam.Map(_write, beam.pvalue.AsList(results))
    )


def read_results(folder: str) -> list[Any]:
    """Return the elements that `write_results` wrote; JSON turns tuples into lists."""
    with fileio.open(os.path.join(folder, _RESULTS)) as file:
        results: list[Any] = json.loads(file.read())
    return results


def _write(path: str, results: list[Any]) -> None:
    with fileio.open(path, "w") as file:
        file.write(json.dumps(sorted(results)))
