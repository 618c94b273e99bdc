"""Decide whether enough of the lines of an input is usable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from components.line_counts import DUPLICATE, LineCounts
from core.errors import InputError
from preprocessing.reading.detect import encoding_remedy
from preprocessing.reading.pieces import MAX_LINE_BYTES, TOO_LONG
from preprocessing.reading.records import (
    BAD_LABEL,
    BROKEN_CSV,
    BROKEN_JSON,
    CORRUPT_ARCHIVE,
    INVALID_UTF8,
    LINE_TOO_LONG,
    NO_TEXT,
    OTHER_SCALE,
    UNKNOWN_COLUMNS,
    WRONG_TYPE,
)

_REMEDIES = {
    BAD_LABEL: "data.labels sets the meaning of labels, and data.columns.label their column",
    BROKEN_CSV: "CSV has a field with a separator, a quotation mark or a line break in quotation "
    "marks, with no white space outside of them, and a quotation mark inside of them twice, as "
    "pandas' `to_csv` writes them",
    BROKEN_JSON: "each line of JSON lines is one object",
    WRONG_TYPE: "write a label as a text or a number, and a text as one string",
    UNKNOWN_COLUMNS: "rename columns that contain texts to those of the other records",
    LINE_TOO_LONG: f"a line has at most {MAX_LINE_BYTES:,} bytes",
    CORRUPT_ARCHIVE: "download or copy the damaged files again",
}
"""Reason of rejected lines -> remedy. The remedy for INVALID_UTF8 depends on the file."""


def check_counts(
    counts: LineCounts,
    by_file: Mapping[str, LineCounts],
    size: int,
    max_rejected_fraction: float,
    first: Callable[[Collection[str]], str],
) -> None:
    """Check that enough of the input is usable.

    Duplicates and lines without a review are not counted. A single label that contradicts the
    detected scale fails the check, because then every other label is doubtful.

    Args:
      counts: the counts of the lines of all files.
      by_file: path of a file -> the counts of its lines.
      size: total size of the files in bytes.
      max_rejected_fraction: the maximum fraction of unusable lines, and of unreadable bytes.
      first: returns the first lines that were rejected for one of some reasons, for a message.

    Raises:
      InputError: too much of the input is unusable, or no line is left for training.
    """
    if counts.rejected[OTHER_SCALE]:
        raise InputError(
            f"{counts.rejected[OTHER_SCALE]} of the labels contradict the scale that was detected "
            "in samples of the files: set data.labels to the meaning of all labels, such as "
            "{1: 0, 2: 0, 3: null, 4: 1, 5: 1}, or, if another column contains them, write their "
            "records into a file of their own; the first: " + first({OTHER_SCALE})
        )
    lost = counts.lost_bytes
    total = counts.lines_with_review
    unusable = counts.unusable
    rejected = unusable.total()
    excess = f"more than data.max_rejected_fraction ({max_rejected_fraction:g}) allows; the first: "
    if rejected > max_rejected_fraction * total:
        remedies = [remedy for reason, remedy in _REMEDIES.items() if counts.rejected[reason]]
        paths = [
            path for path, of_file in sorted(by_file.items()) if of_file.rejected[INVALID_UTF8]
        ]
        if paths:
            remedies.append(f"{paths[0]} {encoding_remedy(paths[0])}")
        raise InputError(
            f"{rejected} of {total} lines ({rejected / total:.1%}) cannot be used, {excess}"
            + "; ".join([first(unusable), *remedies])
        )
    if lost > max_rejected_fraction * size:
        raise InputError(
            f"{lost:,} of {size:,} bytes ({lost / size:.1%}) are damaged, NUL or 0xFF, or in lines "
            f"of {TOO_LONG} or with several records, {excess}{first(unusable)}; "
            "download or copy the files again, and end each record with a line break (LF)"
        )
    if not counts.lines:
        raise InputError(
            "no line is left for training, because no file of data.input_base contains a record: "
            "write or download the files again, or set data.input_base to another folder"
        )
    if not counts.examples["train"]:
        blank = counts.rejected[NO_TEXT]
        without_text = f"{blank} lines have no text (data.columns.text), " if blank else ""
        others = counts.examples.total()
        held_out = f", {others} in eval or test (equal texts belong to one split)" if others else ""
        raise InputError(
            f"no line is left for training: {without_text}"
            f"of {total} lines with text {rejected} were rejected, "
            f"{counts.neutral} left out by label, {counts.rejected[DUPLICATE]} duplicates of "
            f"texts in other files, {counts.over_max_examples} over data.max_examples{held_out}"
        )
