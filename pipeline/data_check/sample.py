"""Read a sample of bounded size with the reader of a run, and the whole of a small input."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from components.review_example_gen.found_labels import (
    FoundLabels,
    count_labels,
    join_labels,
    with_collected,
)
from components.review_example_gen.units import Source
from core.machine import cores
from preprocessing.reading.columns import Layout
from preprocessing.reading.files import SourceFile
from preprocessing.reading.labels import CollectedLabels
from preprocessing.reading.pieces import LINE_FORMATS, Piece, cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch

_LINES, _LEAST = 100_000, 200
"""Approximate number of lines that are read of all files, and the minimum of each piece."""
_LARGE, _WINDOWS = 16 << 20, 8
"""Bytes of a file that is read in several places, and the number of these places."""
_BZ2_WINDOWS, _BZ2_LINES = 3, 4_000
"""The same number for a bz2 file, and the maximum number of lines of each place, because a block of
0.9 MB takes 0.2 s."""


class Sample:
    """The sample of some files.

    Args:
      sources: the pieces of the files that are read from their starts, see `sample_of`.

    Attributes:
      sources: these pieces.
      lines: path -> number of lines that the last call has read of it.
      incomplete: the paths of which the last call has not read all lines.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.lines: dict[str, int] = {}
        self.incomplete: set[str] = set()

    def only(self, groups: Collection[str]) -> Sample:
        """Return the sample of the files of some groups.

        Args:
          groups: the groups.
        """
        return Sample([source for source in self.sources if source.group in groups])

    def batches(
        self, collected: CollectedLabels | None = None
    ) -> Iterator[tuple[str, Piece, Batch]]:
        """Yield (group, piece, batch) of the sample.

        Args:
          collected: gets the labels, see `columns.Layout`; None: they have a meaning.

        Raises:
          InputError: a file cannot be read.
          OSError: a file cannot be read.
        """
        self.lines, self.incomplete = {}, set()
        most = max(_LEAST, _LINES // max(1, len(self.sources)))
        sources = with_collected(self.sources, collected) if collected else self.sources
        with ThreadPoolExecutor(cores()) as pool:
            for group, piece in sources:
                read, enough = 0, min(most, _BZ2_LINES) if piece.is_bz2 else most
                batches = read_batches(piece, pool)
                for batch in batches:
                    read += batch.lines
                    yield group, piece, batch
                    if read >= enough:
                        if next(batches, None) is not None:
                            self.incomplete.add(piece.path)
                        break
                self.lines[piece.path] = self.lines.get(piece.path, 0) + read

    def labels(self) -> FoundLabels:
        """Return the labels of the sample, as the first pass of a run finds them.

        Raises:
          InputError: a file cannot be read.
          OSError: a file cannot be read.
        """
        collected = CollectedLabels()
        batches = ((group, batch) for group, _, batch in self.batches(collected))
        return join_labels([count_labels(batches, collected)])


def sample_of(files: Sequence[SourceFile], layouts: Sequence[Layout]) -> Sample:
    """Return the sample of some files.

    Args:
      files: the files.
      layouts: the layout of each of them.

    Raises:
      InputError: a file cannot be opened.
    """
    return Sample(
        [
            Source(file.group, piece)
            for file, layout in zip(files, layouts, strict=True)
            for piece in _windows(file, layout)
        ]
    )


def _windows(file: SourceFile, layout: Layout) -> list[Piece]:
    """Return the pieces of a file; a large file of lines has some of equal size."""
    pieces = cut_file(file.path, layout)
    if layout.format not in LINE_FORMATS or file.size < _LARGE or pieces[0].end is None:
        return pieces
    count = _BZ2_WINDOWS if pieces[0].is_bz2 else _WINDOWS
    edges = [file.size * index // count for index in range(count + 1)]
    unpacked = sum(piece.unpacked for piece in pieces) // count
    return [
        Piece(file.path, layout, number, start, end, pieces[0].is_bz2, unpacked)
        for number, (start, end) in enumerate(pairwise(edges))
    ]
