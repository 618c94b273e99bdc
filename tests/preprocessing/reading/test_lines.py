"""The lines of a file: they do not depend on the sizes of its reads, and have a limit."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.reading import lines
from preprocessing.reading.lines import Lost, split_lines
from preprocessing.reading.pieces import Chunk

PARTS = st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"\xff\0", b"defghi"]))


def found_lines(data, cuts):
    """Return the numbers and the lines of content that is read in parts; None for a long line."""
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    found = []
    for item in split_lines([Chunk(data[start:end], True) for start, end in pairwise(edges)], 0):
        if isinstance(item, Lost):
            found.append((item.record.position, None))
            continue
        for number, line in enumerate(item.data.split(b"\n"), item.first):
            found.append((number, line if len(line) <= lines.MAX_LINE_BYTES + 1 else None))
    return found


@settings(max_examples=200)
@given(
    parts=PARTS, cuts=st.lists(st.integers(1, 40)), limit=st.integers(0, 6), is_long=st.booleans()
)
def test_lines_do_not_depend_on_how_they_are_read(parts, cuts, limit, is_long):
    data = b"".join(parts)
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_LINE_BYTES", limit if is_long else 1 << 20)
        # A line may have one byte more, its carriage return.
        most = lines.MAX_LINE_BYTES + 1
        assert found_lines(data, cuts) == [
            (number, line if len(line) <= most else None) for number, line in enumerate(expected, 1)
        ]


def test_an_overlong_line_is_not_held_in_memory():
    chunks = (Chunk(bytes(1 << 20), True) for _ in range(64))
    tracemalloc.start()
    try:
        [lost] = split_lines(chunks, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(lost, Lost)
    assert lost.record.reason == "line_too_long"
    assert peak < 8 << 20
