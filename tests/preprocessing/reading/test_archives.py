"""Decompressing files: every archive, every kind of damage, every edge."""

import bz2
import pickle
import random
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.files import open_bytes
from tests.preprocessing.reading.review_files import COMPRESS, one_line
from tests.preprocessing.reading.test_files import ARCHIVES, read_until_damage, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("archives")


@pytest.mark.parametrize("suffix", COMPRESS)
@settings(max_examples=40)
@given(parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=4), size=st.integers(1, 5000))
def test_archives_of_many_members_are_read_whole(folder, suffix, parts, size):
    compress = COMPRESS[suffix]
    prefix = b"not an archive "
    data = b"".join(compress(part if suffix else prefix + part) for part in parts)
    # The name is irrelevant: only the content counts.
    path = write(folder, "name" if suffix else "name.gz", data)
    expected = b"".join(parts) if suffix else data
    assert read_until_damage(path, size) == (expected, None)


@pytest.mark.parametrize("suffix", ARCHIVES)
@pytest.mark.parametrize("size", [65537, 3_000_000])
def test_sizes_around_the_steps(folder, suffix, size):
    noise = random.Random(size).randbytes(size)
    # Three members: one that does not shrink, one that shrinks a thousandfold, one more.
    data = b"".join(COMPRESS[suffix](part) for part in (noise, b"a" * size, noise[:1000]))
    content, damage = read_until_damage(write(folder, "sizes", data), 1 << 20)
    assert (content == noise + b"a" * size + noise[:1000], damage) == (True, None)


def skippable(number, content):
    """Return a skippable zstd frame; a file of pzstd starts with such a frame of four bytes."""
    return struct.pack("<II", 0x184D2A50 + number, len(content)) + content


@settings(max_examples=60)
@given(
    parts=st.lists(
        st.binary(max_size=3000) | st.tuples(st.integers(0, 15), st.binary(max_size=9000)),
        min_size=1,
        max_size=5,
    ),
    size=st.integers(1, 5000),
)
@example(parts=[(0, bytes(4)), b"one", (15, b""), b"two", (3, bytes(200_000))], size=1000)
def test_skippable_zstd_frames_are_skipped_wherever_they_are(folder, parts, size):
    compress = COMPRESS[".zst"]
    data = b"".join(
        compress(part) if isinstance(part, bytes) else skippable(*part) for part in parts
    )
    path = write(folder, "plain-name", data)
    expected = b"".join(part for part in parts if isinstance(part, bytes))
    assert read_until_damage(path, size) == (expected, None)


@pytest.mark.parametrize("suffix", ARCHIVES)
@settings(max_examples=40)
@given(content=st.binary(min_size=1, max_size=2000), where=st.floats(0, 1, exclude_max=True))
def test_a_truncated_archive_yields_its_content(folder, suffix, content, where):
    archive = COMPRESS[suffix](content)
    cut = int(where * len(archive))
    data, damage = read_until_damage(write(folder, "cut" + suffix, archive[:cut]))
    assert damage is not None and damage.position == cut
    assert content.startswith(data)
    assert f"byte {cut:,} of the compressed file" in str(damage)


@pytest.mark.parametrize("suffix", ARCHIVES)
@settings(max_examples=40)
@given(content=st.binary(max_size=3000), where=st.floats(0, 1), wrong=st.binary(min_size=1))
def test_garbage_is_an_error_after_the_content_before_it(folder, suffix, content, where, wrong):
    good = COMPRESS[suffix](content)
    bad = bytearray(COMPRESS[suffix](content[::-1]))
    at = 4 + int(where * (len(bad) - 4))
    bad[at : at + len(wrong)] = wrong
    data, damage = read_until_damage(write(folder, "garbage", good + bytes(bad)))
    assert data.startswith(content)
    if damage is not None:
        assert len(good) <= damage.position <= len(good) + len(bad)


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_garbage_after_the_archive_is_damage(folder, suffix):
    good = COMPRESS[suffix](b"good " * 100)
    data, damage = read_until_damage(write(folder, "after", good + b"<html>not found</html>"))
    assert data == b"good " * 100
    assert damage is not None and len(good) <= damage.position <= len(good) + 22


def test_damage_is_raised_again_and_survives_pickling(folder):
    path = write(folder, "again", bz2.compress(b"some text")[:-3])
    with open_bytes(path) as stream:
        for _ in range(2):
            with pytest.raises(CorruptArchive) as error:
                while stream.read(1):
                    pass
    again = pickle.loads(pickle.dumps(error.value))
    assert (again.args, str(again)) == (error.value.args, str(error.value))


@pytest.mark.parametrize(
    ("name", "problem"), [("missing", "No such file"), ("", "not a regular file")]
)
def test_a_file_that_cannot_be_opened_is_an_error(folder, name, problem):
    with pytest.raises(InputError) as error:
        open_bytes(str(folder / name))
    one_line(error, str(folder / name), problem)
