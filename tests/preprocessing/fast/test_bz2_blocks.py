"""bz2 by block: every cut, every kind of damage, against the standard library."""

import bz2
import io
import random
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


def marks():
    return find_marks(ARCHIVE)


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
    whole = sum(mark < len(archive) * 8 for mark in marks()) - 1
    assert len(content(found)) >= max(0, whole) * 99_000


@pytest.mark.parametrize("seed", range(4))
def test_damage_loses_only_the_blocks_that_contain_it(seed):
    at = random.Random(seed).randrange(50, len(ARCHIVE) - 100)
    wrong = bytes(byte ^ 0xFF for byte in ARCHIVE[at : at + 64])
    archive = ARCHIVE[:at] + wrong + ARCHIVE[at + 64 :]
    found = read(archive)
    (lost,) = damage(found)
    assert at <= lost.position
    hit = [
        start < (at + 64) * 8 and end > at * 8
        for start, end in zip(marks(), [*marks()[1:], len(ARCHIVE) * 8], strict=True)
    ]
    assert len(content(found)) >= len(CONTENT) - 100_100 * sum(hit)
    before, after = content(found[: found.index(lost)]), content(found[found.index(lost) :])
    assert CONTENT.startswith(before) and CONTENT.endswith(after)
    assert lost.lost <= sum(hit) * max((end - start) // 8 + 2 for start, end in pairwise(marks()))


def test_garbage_after_the_archive_is_damage():
    found = read(ARCHIVE + b"<html>not found</html>")
    (lost,) = damage(found)
    assert content(found) == CONTENT
    assert len(ARCHIVE) < lost.position <= len(ARCHIVE) + 22
    assert 0 < lost.lost <= 22


@settings(max_examples=60)
@given(st.binary(max_size=300), st.floats(0, 1), st.binary(min_size=1, max_size=80))
def test_content_before_any_damage_is_kept(text, where, wrong):
    bad = bytearray(bz2.compress(text))
    at = 4 + int(where * (len(bad) - 4))
    bad[at : at + len(wrong)] = wrong
    assert content(read(bz2.compress(b"good") + bytes(bad))).startswith(b"good")
