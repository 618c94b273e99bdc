"""The lines of a stream: they do not depend on the sizes of its reads, and have a limit."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.reading import lines
from preprocessing.reading.lines import split_lines, stream_lines
from preprocessing.reading.pieces import Chunk


class Pieces(io.RawIOBase):
    """A stream whose reads end at given positions."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data, self._sizes = data, sizes

    def read(self, size: int | None = -1) -> bytes:
        count = min(self._sizes.pop(0) if self._sizes else 1 << 20, size or 0)
        part, self._data = self._data[:count], self._data[count:]
        return part


def expected_lines(data: bytes, limit: int, keep_cr: bool = False) -> list[bytes | None]:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not keep_cr:
        lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
    return [line if len(line) <= limit else None for line in lines]


@settings(max_examples=300)
@given(
    data=st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"\xff\0"])).map(b"".join),
    sizes=st.lists(st.integers(1, 7)),
    limit=st.integers(0, 6),
    keep_cr=st.booleans(),
)
def test_lines_do_not_depend_on_how_they_are_read(
    data: bytes, sizes: list[int], limit: int, keep_cr: bool
) -> None:
    found = list(stream_lines(Pieces(data, sizes), limit, keep_cr))  # type: ignore[arg-type]
    expected = expected_lines(data, limit, keep_cr)
    assert [number for number, _ in found] == list(range(1, len(expected) + 1))
    assert [line for _, line in found] == expected


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_lines_across_the_chunks_that_are_read(offset: int, ending: bytes) -> None:
    first = b"x" * (lines._CHUNK - len(ending) + offset)
    data = first + ending + b"second" + ending + b"third"
    expected: list[tuple[int, bytes | None]] = [(2, b"second"), (3, b"third")]
    found = list(stream_lines(io.BytesIO(data), 1 << 21))
    assert found[1:] == expected
    assert found[0] == (1, first)


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_limit_is_on_the_line_without_its_ending(over: int, ending: bytes) -> None:
    line = b"y" * (lines.MAX_LINE_BYTES + over)
    data = b"before\n" + line + ending
    assert list(stream_lines(io.BytesIO(data)))[1:] == [(2, None if over else line)]


class Endless(io.RawIOBase):
    """Return a line of 64 MiB, never in memory as a whole, and then a short line."""

    def __init__(self) -> None:
        self._chunks = 64
        self._chunk = bytes(1 << 20)

    def read(self, size: int | None = -1) -> bytes:
        self._chunks -= 1
        return self._chunk if self._chunks >= 0 else (b"\nlast", b"")[self._chunks < -1]


def test_an_overlong_line_is_not_held_in_memory() -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        assert list(stream_lines(Endless())) == [(1, None), (2, b"last")]  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_an_overlong_line_of_a_piece_is_not_held_in_memory() -> None:
    import tracemalloc

    chunks = (Chunk(bytes(1 << 20), True) for _ in range(64))
    tracemalloc.start()
    try:
        [lost] = split_lines(chunks, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(lost, lines.Lost)
    assert lost.record.reason == "line_too_long"
    assert peak < 8 << 20


def test_streams_without_text() -> None:
    assert list(stream_lines(io.BytesIO(b""))) == []
    assert list(stream_lines(io.BytesIO(b"\n"))) == [(1, b"")]
    assert list(stream_lines(io.BytesIO(b"\r"))) == [(1, b"")]
