"""Account for every line that does not become an Example."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen.splits import Routed
from preprocessing.reading.cut import Piece

DUPLICATE = "duplicate_across_splits"
"""The reason of a readable review whose text is also in the files of a held-out split."""
LOST_BYTES = "lost_bytes"
"""The count of damaged bytes of compressed files, beside the counts of lines."""


class Account:
    """The counts of a unit for each input file, and the file of its rejected lines."""

    def __init__(self, path: str):
        """Open no file yet.

        Args:
          path: the file of the rejected lines. Without a rejected line it is not created.
        """
        self._by_file: dict[str, Counter[str]] = {}
        self._path = path
        self._file: Any = None

    def add(self, piece: Piece, routed: Routed) -> Counter[str]:
        """Count a batch and write its rejected lines, with their positions in the piece.

        Returns:
          The counts of the piece's file: `neutral`, `lost_bytes` and `rejected/REASON`. The caller
          adds further counts to them.
        """
        batch = routed.batch
        counts = self._by_file.setdefault(piece.path, Counter())
        counts["neutral"] += batch.neutrals
        counts[LOST_BYTES] += batch.lost
        found = [(item.position, item.reason, item.detail) for item in batch.rejected]
        for index in np.flatnonzero(routed.duplicate_in != "").tolist():
            detail = f"the same text is in the {routed.duplicate_in[index]} files"
            found.append((batch.positions[index], DUPLICATE, detail))
        if not found:
            return counts
        if self._file is None:
            self._file = FileSystems.create(self._path, "application/json")
        for position, reason, detail in sorted(found):
            counts[f"rejected/{reason}"] += 1
            line = json.dumps([piece.path, piece.number, position, reason, detail])
            self._file.write(line.encode() + b"\n")
        return counts

    def by_file(self) -> dict[str, dict[str, int]]:
        """Return path -> name -> count, without zeros."""
        return {path: dict(+counts) for path, counts in self._by_file.items()}

    def close(self) -> str | None:
        """Close the file; return its path, or None if no line was rejected."""
        if self._file is None:
            return None
        self._file.close()
        return self._path
