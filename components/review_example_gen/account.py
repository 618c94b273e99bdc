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
    """The counts of a unit, and a file with its rejected lines if there are any.

    Attributes:
      counts: `neutral`, `lost_bytes`, `rejected/REASON` -> lines. The caller adds further ones.
    """

    def __init__(self, path: str):
        """Open no file yet; `path` is that of the rejected lines."""
        self.counts: Counter[str] = Counter()
        self._path = path
        self._file: Any = None

    def add(self, piece: Piece, routed: Routed) -> None:
        """Count a batch and write its rejected lines, with their positions in the piece."""
        batch = routed.batch
        self.counts["neutral"] += batch.neutrals
        self.counts[LOST_BYTES] += batch.lost
        found = [(item.position, item.reason, item.detail) for item in batch.rejected]
        for index in np.flatnonzero(routed.duplicate_in != "").tolist():
            detail = f"the same text is in the {routed.duplicate_in[index]} files"
            found.append((batch.positions[index], DUPLICATE, detail))
        if not found:
            return
        if self._file is None:
            self._file = FileSystems.create(self._path, "application/json")
        for position, reason, detail in sorted(found):
            self.counts[f"rejected/{reason}"] += 1
            line = json.dumps([piece.path, piece.number, position, reason, detail])
            self._file.write(line.encode() + b"\n")

    def close(self) -> str | None:
        """Close the file; return its path, or None if no line was rejected."""
        if self._file is None:
            return None
        self._file.close()
        return self._path
