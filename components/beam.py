"""The parts that the Beam pipelines of several components share."""

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
    """Divide items into units of work of about the same size, by dealing them out in turns.

    Args:
      items: files, or other items.
      size: the maximum number of items in a unit.
    """
    count = -(-len(items) // size)
    return [items[number::count] for number in range(count)]


def write_results(pipeline: beam.Pipeline, results: beam.PCollection, folder: str) -> None:
    """Pass results from Beam workers to the executor through a file, for `read_results`.

    The workers may be other processes or machines.

    Args:
      pipeline: the pipeline that the stages are added to.
      results: elements that JSON can represent, and that can be sorted.
      folder: an existing folder, local or remote. The executor and the workers can access it.
    """
    _ = (
        pipeline
        | "DoneFile" >> beam.Create([os.path.join(folder, _RESULTS)])
        | "WriteDone" >> beam.Map(_write, beam.pvalue.AsList(results))
    )


def read_results(folder: str) -> list[Any]:
    """Return the sorted elements that `write_results` wrote, with lists instead of tuples.

    Args:
      folder: the folder of `write_results`.

    Raises:
      OSError, tensorflow.errors.OpError: the file cannot be read.
    """
    with fileio.open(os.path.join(folder, _RESULTS)) as file:
        results: list[Any] = json.loads(file.read())
    return results


def _write(path: str, results: list[Any]) -> None:
    with fileio.open(path, "w") as file:
        file.write(json.dumps(sorted(results)))
