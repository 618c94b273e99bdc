"""Read the spans of a window, each of them alone, unless an earlier run has read the same files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from absl import logging
from tfx.dsl.io import fileio

from components.beam import read_results, write_results
from components.review_example_gen.found_labels import FoundLabels, collect_labels, join_labels
from components.review_example_gen.read_unit import UnitResult, read_unit
from components.review_example_gen.reader import Reader
from components.review_example_gen.spans import NEWER, OLDER, Input
from components.review_example_gen.splits import Splitting
from components.review_example_gen.units import (
    BYTES,
    BYTES_OF_LABELS,
    Source,
    Unit,
    in_units,
)
from components.review_example_gen.window import READ_AS, ReadSpan, assemble, split_older
from components.span_cache import Key, SpanCache
from core.errors import InputError
from core.machine import cores
from core.progress import report
from examples.split_fractions import SplitFractions
from preprocessing.reading.files import fingerprint

_LABELS, _EXAMPLES = "labels", "examples"
"""Kinds of entries in the cache: the labels of a span, and its units."""


class SpanReader(Reader):
    """A reader of the spans of a window.

    Args:
      found: the input, with at least two spans.
      cache: the folder of the cache; empty: nothing is reused or kept.
      code: the fingerprint of the code that reads.
      make_pipeline: returns a new Beam pipeline.
      scratch: an existing folder for files.
      fractions: the sizes of the splits without files of their own.
    """

    def __init__(
        self,
        found: Input,
        cache: str,
        code: str,
        make_pipeline: Callable[[], beam.Pipeline],
        scratch: str,
        fractions: SplitFractions,
    ):
        self._found, self._code, self._scratch = found, code, scratch
        self._splitting = split_older(fractions)
        self._files = [found.of_span(span) for span in found.spans]
        self._number_of = {
            file.path: number for number, files in enumerate(self._files) for file in files
        }
        self._cache = SpanCache(cache or os.path.join(scratch, "spans"))
        self._make_pipeline = make_pipeline
        self._used: list[Key] = []

    def labels(self, sources: Sequence[Source]) -> FoundLabels:
        of_span = self._of_span(sources)
        keys = self._keys(_LABELS, of_span)
        values = self._cache.find_all(keys)
        new = [number for number, value in enumerate(values) if value is None]
        for number, results in self._run(new, of_span, _labels_of, _LABELS).items():
            self._check_unchanged(_LABELS, of_span[number], keys[number], number)
            self._cache.store(keys[number], results)
            values[number] = results
        newest = len(values) - 1
        return join_labels(
            [(label, NEWER if number == newest else OLDER, count) for label, _, count in unit]
            for number, units in enumerate(values)
            for unit in units
        )

    def read(self, sources: Sequence[Source], max_examples: Mapping[str, int]) -> list[UnitResult]:
        of_span = self._of_span(sources)
        keys = self._keys(_EXAMPLES, of_span)
        done = self._find_units(keys)
        new = [number for number, units in enumerate(done) if units is None]
        logging.info("Spans: %d are read, %d are reused", len(new), len(done) - len(new))
        done_now = self._run(new, of_span, _examples_of, _EXAMPLES, self._splitting)
        for number, results in done_now.items():
            self._check_unchanged(_EXAMPLES, of_span[number], keys[number], number)
            units = [UnitResult.from_json(result) for result in results]
            done[number] = self._store_units(keys[number], units)
        names = [span.name for span in self._found.spans]
        spans = [ReadSpan(name, units or []) for name, units in zip(names, done, strict=True)]
        return assemble(spans, max_examples, self._splitting, self._scratch)

    def _find_units(self, keys: Sequence[Key]) -> list[list[UnitResult] | None]:
        """Return the units of each span; None if there is no complete entry with its key."""
        found: list[list[UnitResult] | None] = []
        for key, value in zip(keys, self._cache.find_all(keys), strict=True):
            folder = self._cache.folder(key)
            units = value and [_moved(UnitResult.from_json(unit), folder) for unit in value]
            found.append(units)
        return found

    def _store_units(self, key: Key, units: Sequence[UnitResult]) -> list[UnitResult]:
        """Move the files of the units of a span into an entry; return the units that it has then.

        Args:
          key: the key.
          units: the units.

        Raises:
          OSError, tensorflow.errors.OpError: a file cannot be moved or written.
        """
        paths: list[str] = []
        for unit in units:
            paths += [*(shard.path for shard in unit.shards), unit.rejected, unit.index_file]
        self._cache.store(key, [_moved(unit, "").to_json() for unit in units], paths)
        folder = self._cache.folder(key)
        return [_moved(unit, folder) for unit in units]

    def files(self, units: Iterable[UnitResult]) -> dict[str, int]:
        found: dict[str, int] = {}
        for unit in units:
            if unit.shards:
                # All pieces of a unit belong to one span.
                span = self._found.spans[self._number_of[unit.pieces[0].path]]
                found |= {shard.path: span.number for shard in unit.shards}
        return found

    def remove_old(self) -> None:
        self._cache.remove_old(self._used, len(self._found.spans))

    def _run(
        self,
        numbers: Sequence[int],
        of_span: Sequence[Sequence[Source]],
        read: Callable[..., Iterator[list[Any]]],
        name: str,
        *arguments: Any,
    ) -> dict[int, list[Any]]:
        """Read spans; return number of a span -> the results of its units, sorted.

        Args:
          numbers: the numbers of the spans in the window.
          of_span: the pieces of each span.
          read: the function that Beam calls for (number of a span, unit), a folder and `arguments`.
          name: the name of the folder.
          *arguments: further arguments of `read`.

        Raises:
          InputError: a file cannot be read.
        """
        if not numbers:
            return {}
        folder = os.path.join(self._scratch, name)
        fileio.makedirs(folder)
        size = sum(file.size for number in numbers for file in self._files[number])
        report(BYTES if name == _EXAMPLES else BYTES_OF_LABELS, 0, size)
        units = [(number, unit) for number in numbers for unit in in_units(of_span[number])]
        # The number of a unit is a part of the names of its files and of its progress.
        numbered = [(number, unit._replace(number=at)) for at, (number, unit) in enumerate(units)]
        with self._make_pipeline() as pipeline:
            done = (
                pipeline
                | "Units" >> beam.Create(numbered, reshuffle=True)
                | "ReadSpans" >> beam.FlatMap(read, folder, *arguments)
            )
            write_results(pipeline, done, folder)
        results: dict[int, list[Any]] = {number: [] for number in numbers}
        for number, result in read_results(folder):
            results[number].append(result)
        return results

    def _of_span(self, sources: Iterable[Source]) -> list[list[Source]]:
        """Return the pieces of each span of the window, in the group READ_AS."""
        of_span: list[list[Source]] = [[] for _ in self._found.spans]
        for source in sources:
            number = self._number_of[source.piece.path]
            of_span[number].append(source._replace(group=READ_AS))
        return of_span

    def _keys(self, kind: str, of_span: Sequence[Sequence[Source]]) -> list[Key]:
        """Return the key of each span in the cache.

        Raises:
          InputError: a file cannot be read.
        """
        with ThreadPoolExecutor(cores()) as pool:
            keys = list(pool.map(lambda each: self._key(kind, *each), enumerate(of_span)))
        self._used += keys
        return keys

    def _key(self, kind: str, number: int, sources: Iterable[Source]) -> Key:
        files = [file._replace(group=READ_AS) for file in self._files[number]]
        layouts = {source.piece.path: repr(source.piece.layout) for source in sources}
        # The paths are in the rejected lines.
        content = [
            kind,
            self._found.base,
            fingerprint(self._found.base, files),
            layouts,
            self._code,
            self._splitting.fractions.model_dump(),
        ]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return Key(self._found.spans[number].number, digest)

    def _check_unchanged(self, kind: str, sources: Sequence[Source], key: Key, number: int) -> None:
        """Check that the files of a span have the content of its key, now that they were read.

        Raises:
          InputError: a file has changed.
        """
        if self._key(kind, number, sources) != key:
            path = self._found.spans[number].path
            raise InputError(
                f"data.input_base: a file in {path} changed while it was read; run again"
            )


def _moved(unit: UnitResult, folder: str) -> UnitResult:
    """Return a unit whose files have the same names in another folder."""

    def moved(path: str) -> str:
        return os.path.join(folder, os.path.basename(path))

    return unit._replace(
        shards=[shard._replace(path=moved(shard.path)) for shard in unit.shards],
        rejected=moved(unit.rejected),
        index_file=moved(unit.index_file),
    )


def _labels_of(numbered: tuple[int, Unit], folder: str) -> Iterator[list[Any]]:
    span, unit = numbered
    for labels in collect_labels(unit):
        yield [span, labels]


def _examples_of(
    numbered: tuple[int, Unit], folder: str, splitting: Splitting
) -> Iterator[list[Any]]:
    span, unit = numbered
    for result in read_unit(unit, {}, {}, splitting, folder, is_indexed=True):
        yield [span, result]
