"""Read a piece of a file, from bytes to batches of reviews. Read this module first.

| step | module | input | output |
|---|---|---|---|
| find the files | `files` | folder and globs | `SourceFile` |
| detect the layout | `detect`, `layouts` | files of an input | `Layout` of each |
| cut | `pieces` | file and layout | `Piece` |
| decompress | `pieces` | `Piece` | `Chunk` |
| split into lines | `pieces` | chunks | `Lines`, `Lost` |
| parse | `formats` | `Lines`, or a stream | `Batch` |

`components.review_example_gen.read_unit` continues: it assigns a split, encodes and writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from preprocessing.reading.archives import DecompressedStream
from preprocessing.reading.formats import csv, fasttext, jsonl, parquet
from preprocessing.reading.open_files import file_size, open_bytes
from preprocessing.reading.pieces import (
    Chunk,
    Lines,
    Piece,
    bytes_read,
    count_filled,
    decompress,
    split_lines,
)
from preprocessing.reading.records import CORRUPT_ARCHIVE, Batch

_LINE_PARSERS = {
    "fasttext": fasttext.make_parser,
    "jsonl": jsonl.make_parser,
    "empty": fasttext.make_parser,
}
_STREAM_READERS = {"csv": csv.read_csv, "parquet": parquet.read_parquet}


def read_batches(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[Batch]:
    """Yield every line of a piece as a part of a batch; positions count from 1 in the piece.

    Every line (CSV: record, Parquet: row) becomes a review, a neutral or a rejected line. A damaged
    part of a compressed file becomes one rejected line. In a bz2 file of lines, reading continues
    after the damage.

    Args:
      piece: the piece.
      pool: the threads that decompress a bz2 file.

    Raises:
      InputError: the file cannot be opened.
      OSError: the file cannot be read. A remote file raises the errors of its file system in Beam.
    """
    make_parser = _LINE_PARSERS.get(piece.layout.format)
    content = _ContentBytes(piece)
    if make_parser is None:
        yield from _read_stream(piece, content)
        return
    parse = make_parser(piece.layout)
    read = 0

    def chunks() -> Iterator[Chunk]:
        nonlocal read
        for chunk in decompress(piece, pool):
            read = max(read, chunk.read)
            yield chunk

    for found in split_lines(chunks(), piece.start):
        if isinstance(found, Lines):
            batch = parse(found)
            batch.lost = content.stored(batch.lost + count_filled(found.data))
        elif found.record.reason == CORRUPT_ARCHIVE:
            batch = Batch(rejected=[found.record], lost=found.bytes)
        else:
            batch = Batch(rejected=[found.record], lost=content.stored(found.bytes))
        batch.read = read
        yield batch


def _read_stream(piece: Piece, content: _ContentBytes) -> Iterator[Batch]:
    """Yield the batches of a CSV or Parquet file, which is read as a whole."""
    with open_bytes(piece.path) as stream:
        reader = _STREAM_READERS[piece.layout.format]
        for batch in reader(piece.path, stream, piece.layout):
            batch.lost = content.stored(batch.lost)
            batch.read = bytes_read(stream)
            yield batch
        if isinstance(stream, DecompressedStream) and stream.damage:
            yield Batch(lost=file_size(piece.path) - stream.damage.delivered)


class _ContentBytes:
    """A converter of the size of unreadable content to bytes of the stored file.

    It uses the usual ratio of the compression. The sum over a piece is at most its stored size.
    """

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._counted = 0

    def stored(self, content: int) -> int:
        """Return the number of bytes in the file for a number of bytes of its content."""
        if not content:
            return 0
        piece = self._piece
        size = piece.stored
        share = round(content * size / max(size, piece.unpacked))
        found = min(share, size - self._counted)
        self._counted += found
        return found
