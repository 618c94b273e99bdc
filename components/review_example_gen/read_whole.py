"""Read all files of an input together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

import apache_beam as beam
from tfx.dsl.io import fileio

from components.beam import read_results, write_results
from components.review_example_gen.found_labels import FoundLabels, collect_labels, join_labels
from components.review_example_gen.read_unit import UnitResult, read_unit
from components.review_example_gen.reader import Reader
from components.review_example_gen.splits import (
    Splitting,
    find_held_out,
    find_limits,
    named_splits,
)
from components.review_example_gen.units import BYTES, BYTES_OF_LABELS, Source, in_units
from core.progress import report
from examples.split_fractions import SplitFractions


class WholeReader(Reader):
    """A reader of all files of an input.

    Args:
      make_pipeline: returns a new Beam pipeline.
      scratch: an existing folder for files.
      size: the bytes of all files, as they are stored.
      fractions: the sizes of the splits without files of their own.
    """

    def __init__(
        self,
        make_pipeline: Callable[[], beam.Pipeline],
        scratch: str,
        size: int,
        fractions: SplitFractions,
    ):
        self._make_pipeline, self._scratch, self._size = make_pipeline, scratch, size
        self._fractions = fractions

    def labels(self, sources: Sequence[Source]) -> FoundLabels:
        report(BYTES_OF_LABELS, 0, self._size)
        folder = os.path.join(self._scratch, "labels")
        fileio.makedirs(folder)
        with self._make_pipeline() as pipeline:
            units = pipeline | "Units" >> beam.Create(in_units(sources), reshuffle=True)
            write_results(pipeline, units | "Labels" >> beam.FlatMap(collect_labels), folder)
        return join_labels(read_results(folder))

    def read(self, sources: Sequence[Source], max_examples: Mapping[str, int]) -> list[UnitResult]:
        report(BYTES, 0, self._size)
        splitting = Splitting(named_splits(sources), self._fractions)
        with self._make_pipeline() as pipeline:
            units = pipeline | "Units" >> beam.Create(in_units(sources), reshuffle=True)
            held_out = find_held_out(pipeline, sources)
            limits = find_limits(units, held_out, splitting, max_examples)
            done = units | "ReadUnit" >> beam.FlatMap(
                read_unit, held_out, limits, splitting, self._scratch
            )
            write_results(pipeline, done, self._scratch)
        return [UnitResult.from_json(unit) for unit in read_results(self._scratch)]

    def files(self, units: Iterable[UnitResult]) -> dict[str, int]:
        # There are no spans.
        return {}

    def remove_old(self) -> None:
        """Do nothing, because this reader keeps nothing for later runs."""
