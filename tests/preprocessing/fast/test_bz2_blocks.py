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


def read(archive, start=0, compiled=False):
    return list(read_blocks(io.BytesIO(archive), start, POOL, 3, compiled=compiled))


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


def test_two_marks_without_a_block_between_them_are_damage():
    found = read(b"BZh91AY&SY1AY&SY" + ARCHIVE)
    assert content(found) == CONTENT
    assert damage(found)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, len(ARCHIVE) - 1), st.integers(0, 255), st.booleans())
def test_compiled_loops_have_the_same_result_with_and_without_damage(at, byte, cut):
    archive = bytearray(ARCHIVE)
    archive[at] = byte
    if cut:
        del archive[at:]
    assert read(archive, compiled=True) == read(archive)


MARKS = [mark // 8 for mark in find_marks(ARCHIVE)]


@pytest.mark.parametrize("inside", range(8))
def test_a_mark_over_the_edge_of_two_reads_is_found(monkeypatch, inside):
    # The first read ends inside the third mark.
    monkeypatch.setattr(bz2_blocks, "_READ", MARKS[2] + inside)
    found = read(ARCHIVE)
    assert (content(found), damage(found)) == (CONTENT, [])
    # No mark is in the first read, which ends inside the third mark.
    start = MARKS[2] - 10
    monkeypatch.setattr(bz2_blocks, "_READ", 10 + inside)
    late = [part for part in found if part.at >= MARKS[2] * 8]
    assert read(ARCHIVE[: MARKS[4] + 7], start)[:2] == late[:2]


def test_reads_of_single_bytes_find_every_mark(monkeypatch):
    monkeypatch.setattr(bz2_blocks, "_READ", 1)
    small = ARCHIVE[MARKS[-1] - 10 :]
    found = read(small, 1)
    assert content(found) == CONTENT[-len(content(found)) :]
    assert found and damage(found) == []


def test_damage_that_is_longer_than_any_block_is_not_kept_and_loses_only_itself(monkeypatch):
    longest = max(end - at for at, end in pairwise([*MARKS, len(ARCHIVE)]))
    # Much more than a block, without a mark.
    archive = ARCHIVE[: MARKS[1]] + b"x" * (10 * longest) + ARCHIVE[MARKS[1] :]
    monkeypatch.setattr(bz2_blocks, "_READ", 1000)
    monkeypatch.setattr(bz2_blocks, "_LONGEST", longest)
    found = read(archive)
    [lost] = damage(found)
    assert content(found) == CONTENT[len(CONTENT) - len(content(found)) :]
    assert len(content(found)) > len(CONTENT) * 0.8
    # The block before the damage, and as much of the damage as is searched for its end.
    assert longest < lost.lost < 3 * longest + 2000
