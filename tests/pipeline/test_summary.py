"""The line that accounts for what was read."""

import pytest

from pipeline.summary import _account


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (
            {"examples_train": 2400, "examples_eval": 300, "examples_test": 288},
            "2,988 read: 2,400 train, 300 eval, 288 test, 0 rejected",
        ),
        (
            {"examples_train": 5, "neutral": 1, "rejected_bad_label": 2, "over_max_examples": 3},
            "11 read: 5 train, 0 eval, 0 test, 1 neutral left out, 3 over data.max_examples, "
            "2 rejected (bad_label 2)",
        ),
        (
            # Bytes are no lines.
            {"examples_train": 5, "rejected_corrupt_archive": 1, "lost_bytes": 900_000},
            "6 read: 5 train, 0 eval, 0 test, 1 rejected (corrupt_archive 1), "
            "900,000 bytes of damaged files lost",
        ),
        ({"examples_train": 5, "lost_bytes": 0}, "5 read: 5 train, 0 eval, 0 test, 0 rejected"),
    ],
)
def test_every_line_is_accounted_for(lines, line):
    assert _account(lines) == line
