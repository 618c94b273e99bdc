"""Blocks of bz2 that compiled loops decompress, against the standard library."""

import bz2
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.fast.bz2_blocks import _END, find_marks
from preprocessing.fast.bz2_decoder import decode_block

WORDS = b"the battery of this phone died after a week and the seller never answered !!!!! ".split()


def block(content, level=9):
    """Return an archive with one block, and the bits at which the block begins and ends."""
    archive = bz2.compress(content, level)
    [start] = find_marks(archive)
    [end] = find_marks(archive, _END)
    return archive, start, end


def prose(size, seed):
    chosen = random.Random(seed)
    return b" ".join(chosen.choice(WORDS) for _ in range(size // 5))[:size]


def rare_bytes(seed):
    """Return bytes of which each is twice as frequent as the one before it, for long codes."""
    counts = [2**power for power in range(18)]
    found = [byte for byte, count in enumerate(counts) for _ in range(count)]
    random.Random(seed).shuffle(found)
    return bytes(found)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"x", id="one byte"),
        pytest.param(b"x" * 1_000_000, id="one byte many times"),
        pytest.param(b"xxxx", id="four equal bytes"),
        pytest.param(b"aaaab" * 1000 + b"c" * 259, id="runs"),
        pytest.param(b"ab" * 50_000, id="a text that repeats itself"),
        pytest.param(b"abc" * 1024, id="a text that repeats itself, of whole parts"),
        pytest.param(bytes(range(256)) * 40, id="all bytes"),
        pytest.param(prose(890_000, 1), id="a full block of words"),
        pytest.param(random.Random(2).randbytes(890_000), id="a full block of random bytes"),
        pytest.param(rare_bytes(3), id="long codes"),
        pytest.param(prose(1024, 4), id="one part"),
        pytest.param(prose(1025, 5), id="two parts"),
        pytest.param(prose(8 * 1024 + 1, 6), id="more parts than are followed at once"),
    ],
)
def test_the_content_is_that_of_the_library(content):
    assert decode_block(*block(content)) == content


@settings(max_examples=150, deadline=None)
@given(
    st.binary(min_size=1, max_size=3000)
    | st.text("ab", min_size=1, max_size=5000).map(str.encode)
    | st.lists(st.sampled_from(WORDS), min_size=1, max_size=2000).map(b" ".join),
    st.binary(max_size=5),
    st.integers(1, 9),
)
def test_any_content_is_that_of_the_library_wherever_the_block_begins(content, before, level):
    archive, start, end = block(content, level)
    moved = before + archive
    assert decode_block(moved, start + 8 * len(before), end + 8 * len(before)) == content


FUZZ = """
import random, sys
from tests.preprocessing.fast.test_bz2_decoder import block, prose, rare_bytes, decode_block

chosen = random.Random(7)
damaged = 0
for content in (prose(3000, 1), rare_bytes(2)[:9000], b"ab" * 800, bytes(range(256)) * 3):
    archive, start, end = block(content)
    for _ in range(400):
        broken = bytearray(archive)
        # Most often in the header, whose numbers are indices.
        at = chosen.randrange(start // 8, min(len(archive), chosen.choice([60, len(archive)])))
        broken[at] = chosen.randrange(256)
        until = chosen.choice([end, end, chosen.randrange(start + 80, end)])
        found = decode_block(bytes(broken), start, until)
        assert found in (None, content), at
        damaged += found is None
assert damaged > 1000
"""


@pytest.mark.slow
def test_damaged_blocks_are_none_and_read_nothing_beyond_their_arrays(tmp_path):
    # With the first variable Numba checks the bounds of arrays. It caches the code with checks too.
    environ = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FUZZ],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr
