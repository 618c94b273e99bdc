"""bz2 by block: every cut, every kind of damage, against the standard library."""

import bz2
import io
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.fast import bz2_blocks
from preprocessing.fast.bz2_blocks import find_marks, read_blocks

POOL = ThreadPoolExecutor(2)
# Level 1 has blocks of 100 kB of content, so that the archive has several blocks.
CONTENT = b"".join(b"%07d %s\n" % (n, b"word" * (n % 7)) for n in range(30_000))
ARCHIVE = bz2.compress(CONTENT, 1)
EMPTY = bz2.compress(b"")


def read(archive, start=0):
    return list(read_blocks(io.BytesIO(archive), start, POOL, 3))


def content(found):
    return b"".join(part.data for part in found)


def damage(found):
    return [part for part in found if part.damage]


@settings(max_examples=25)
@given(st.lists(st.binary(max_size=2000) | st.just(CONTENT[:250_000]), min_size=1, max_size=5))
def test_archives_of_many_streams_are_read_whole(parts):
    found = read(b"".join(bz2.compress(part, 1) for part in parts))
    assert (content(found), damage(found)) == (b"".join(parts), [])


@settings(max_examples=20)
@given(st.lists(st.integers(1, len(ARCHIVE) + len(EMPTY)), max_size=6, unique=True))
def test_every_block_belongs_to_one_piece_wherever_a_file_is_cut(cuts):
    archive = EMPTY + ARCHIVE
    edges = [0, *sorted(cuts), len(archive) + 1]
    found = []
    for start, end in pairwise(edges):
        found += [part for part in read(archive, start) if part.at < end * 8]
    assert (content(found), damage(found)) == (CONTENT, [])


@pytest.mark.parametrize("cut", [4, 5, 10, 14, 40, len(ARCHIVE) // 2, -14, -10, -4, -1])
def test_a_truncated_archive_gives_its_whole_blocks(cut):
    archive = ARCHIVE[:cut]
    *_, last = found = read(archive)
    assert last.position == len(archive)
    assert last.damage == bz2_blocks.TRUNCATED and len(damage(found)) == 1
    assert 0 <= last.lost <= len(archive)
    assert CONTENT.startswith(content(found))
    whole = sum(mark < len(archive) * 8 for mark in find_marks(ARCHIVE)) - 1
    assert len(content(found)) >= max(0, whole) * 99_000


def test_garbage_after_the_archive_is_damage():
    found = read(ARCHIVE + b"<html>not found</html>")
    (lost,) = damage(found)
    assert content(found) == CONTENT
    assert len(ARCHIVE) < lost.position <= len(ARCHIVE) + 22
    assert 0 < lost.lost <= 22
