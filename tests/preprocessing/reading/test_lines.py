"""The lines of a file: they do not depend on the sizes of its reads, and have a limit."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.reading import pieces
from preprocessing.reading.pieces import Chunk, Lost, split_lines

PARTS = st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"\xff\0", b"defghi"]))


def found_lines(chunks):
    """Return the numbers and the lines of content that is read in parts; None for a long line."""
    found = []
    for item in split_lines([Chunk(data, True) for data in chunks], 0):
        if isinstance(item, Lost):
            found.append((item.record.position, None))
        else:
            found += enumerate(item.data.split(b"\n"), item.first)
    return found


@settings(max_examples=200)
@given(parts=PARTS, cuts=st.lists(st.integers(1, 40)), limit=st.sampled_from([0, 2, 6, 1 << 20]))
def test_lines_do_not_depend_on_how_they_are_read(parts, cuts, limit):
    data = b"".join(parts)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[start:end] for start, end in pairwise(edges)]
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        # No chunk is longer than the longest line.
        most = max(limit, *map(len, chunks), 0)
        patch.setattr(pieces, "MAX_LINE_BYTES", most)
        assert found_lines(chunks) == [
            (number, line if len(line.removesuffix(b"\r")) <= most else None)
            for number, line in enumerate(expected, 1)
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
