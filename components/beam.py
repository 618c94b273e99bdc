"""What the Beam pipelines of several components share."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio

from core.local_beam import make_pipeline

_AT_ONCE = 2
_FILES_PER_UNIT = 8
_RESULTS = "done.json"


class LocalBeamExecutor(base_beam_executor.BaseBeamExecutor):
    """A Beam executor of TFX whose pipelines run in this process by default.

    Put it before TFX's own executor in the list of base classes.
    """

    def _make_beam_pipeline(self) -> beam.Pipeline:
        if self._make_beam_pipeline_fn is not None:
            return super()._make_beam_pipeline()
        return make_pipeline(self._beam_pipeline_args)


class OverlappingDoFn(beam.DoFn):
    """A DoFn that works on two elements of a bundle at a time; a subclass defines `result`.

    It is for units of work that take seconds: at the beginning and at the end of a unit only one
    thread works, and meanwhile another unit keeps the other cores busy. Elements must be in the
    global window.
    """

    def result(self, element: Any) -> Any:
        """Return the only output of an element; this is called in several threads."""
        raise NotImplementedError

    def start_bundle(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._running: deque[Future[Any]] = deque()

    def process(self, element: Any) -> Iterator[Any]:
        self._running.append(self._pool.submit(self.result, element))
        if len(self._running) == _AT_ONCE:
            yield self._running.popleft().result()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        with self._pool:
            for running in self._running:
                yield GlobalWindows.windowed_value(running.result())


def units_of(files: Sequence[str]) -> list[Sequence[str]]:
    """Divide files into units of work."""
    count = -(-len(files) // _FILES_PER_UNIT)
    return [files[number::count] for number in range(count)]


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
