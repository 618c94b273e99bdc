"""Finding, opening and decompressing files: every archive, every kind of damage, every edge."""

from __future__ import annotations

import bz2
import glob as stdlib_glob
import gzip
import io
import os
import pickle
import random
import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading import files
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.files import open_bytes
from preprocessing.reading.globs import compile_glob

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
ARCHIVES = [suffix for suffix in COMPRESS if suffix]


def write(folder: Path, name: str, data: bytes = b"x") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def read_until_damage(path: str, size: int = 1000) -> tuple[bytes, CorruptArchive | None]:
    """Return the content of a file, read by `size` bytes, and the damage that ended it."""
    data = b""
    with open_bytes(path) as stream:
        try:
            while part := stream.read(size):
                data += part
        except CorruptArchive as damage:
            return data, damage
    return data, None


def one_line(error: pytest.ExceptionInfo[InputError], *parts: str) -> None:
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


# ---- find_files


def find_files(base: str, pattern: str) -> list[str]:
    """Return the paths of the files that `find_files` finds."""
    return [file.path for file in files.find_files(base, pattern)]


def test_find_files_sorts_the_matches(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt", "deep/d.csv"):
        write(tmp_path, name)
    names = [os.path.basename(path) for path in find_files(str(tmp_path), "*.csv")]
    assert names == ["a.csv", "b.csv"]
    assert find_files(str(tmp_path) + "/", "deep/*") == [str(tmp_path / "deep/d.csv")]
    assert find_files(str(tmp_path), "c.txt") == [str(tmp_path / "c.txt")]
    assert len(find_files(str(tmp_path), "**")) == 4


def test_two_stars_and_a_slash_match_any_folders_and_none(tmp_path: Path) -> None:
    names = ["a.csv", "one/a.csv", "one/two/a.csv", "one/two/b.txt"]
    paths = [write(tmp_path, name) for name in names]
    assert find_files(str(tmp_path), "**/*.csv") == paths[:3]
    assert find_files(str(tmp_path), "**/a.csv") == paths[:3]
    assert find_files(str(tmp_path), "one/**/*.csv") == paths[1:3]
    assert find_files(str(tmp_path), "**/two/*") == paths[2:]
    assert find_files(str(tmp_path), "**/*") == paths


NAMES = ["a", "b.csv", "]", "-", "d/a", "d/b.csv", "d/e/a", "d[1]/a", "d/e/f/b.csv"]
TOKENS = ["*", "?", "[ab]", "[!a]", "[a-c]", "[]d]", "[!]x]", "[", "a", "b", "d", "e", ".csv", "1]"]
PART = st.just("**") | st.lists(st.sampled_from(TOKENS), min_size=1, max_size=3).map("".join)


@settings(max_examples=400)
@given(glob=st.lists(PART, min_size=1, max_size=4).map("/".join))
def test_globs_match_like_the_standard_library(folder: Path, glob: str) -> None:
    # To the standard library a set may hold a slash, `a**` is `a*`, and `a/**` has the file `a/`.
    assume(not re.search(r"\[[^\]]*/", glob))
    assume(all(part == "**" or "**" not in part for part in glob.split("/")))
    assume(glob == "**" or not glob.endswith("/**") or glob.endswith("**/**"))
    for name in NAMES:
        write(folder, f"globs/{name}")
    matched = stdlib_glob.glob(str(folder / "globs" / glob), recursive=True)
    expected = sorted({path for path in matched if os.path.isfile(path)})
    matches = compile_glob(glob).fullmatch
    found = sorted(str(folder / "globs" / name) for name in NAMES if matches(name))
    assert found == expected


def test_the_default_pattern_leaves_out_files_that_are_not_data(tmp_path: Path) -> None:
    others = (".hidden", "_SUCCESS", "README", "readme.txt", "notes.md", "LICENSE", "a.crc")
    for name in ("part-0", "readmes.csv", *others):
        write(tmp_path, name)
    write(tmp_path, ".git/config")
    kept = [str(tmp_path / "part-0"), str(tmp_path / "readmes.csv")]
    assert find_files(str(tmp_path), "*") == kept
    assert find_files(str(tmp_path), "**") == kept
    assert find_files(str(tmp_path), "README*") == [str(tmp_path / "README")]
    assert find_files(str(tmp_path), "_*") == [str(tmp_path / "_SUCCESS")]


@pytest.mark.parametrize(
    "name", ["with space", "a[1]b", "star*", "wh?at", "ünï", "reviews[2018]", "[!x]", "a]b"]
)
def test_a_folder_is_taken_literally(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, f"{name}/x.csv")
    assert find_files(str(tmp_path / name), "*") == [path]
    assert find_files(str(tmp_path / name), "x.csv") == [path]
    assert find_files(str(tmp_path / name), "**/*.csv") == [path]
    assert files.file_size(path) == 1


def test_a_hidden_parent_folder_does_not_hide_the_files(tmp_path: Path) -> None:
    path = write(tmp_path, ".cache/x.csv")
    assert find_files(str(tmp_path / ".cache"), "*") == [path]


def test_errors_of_find_files_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "x.csv")
    with pytest.raises(InputError) as error:
        find_files(str(tmp_path / "missing"), "*")
    one_line(error, str(tmp_path / "missing"), "does not exist", "data.input_base")
    with pytest.raises(InputError) as error:
        find_files(path, "*")
    one_line(error, path, "is a file", "folder")
    with pytest.raises(InputError) as error:
        find_files(str(tmp_path), "*.json")
    one_line(error, str(tmp_path), "'*.json'", "data.splits")
    with pytest.raises(InputError) as error:
        find_files("nothing://bucket/folder", "*")
    one_line(error, "nothing://bucket/folder", "cannot be listed")
    with pytest.raises(InputError) as error:
        find_files(" ", "*")
    one_line(error, "data.input_base")
    os.symlink(tmp_path / "gone", tmp_path / "link.txt")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError) as error:
        find_files(str(tmp_path), "*")
    one_line(error, str(tmp_path), "cannot be read")


def test_a_file_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "x.csv")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileSystems, "open", refuse)
    with pytest.raises(InputError) as error:
        find_files(str(tmp_path), "*")
    one_line(error, path, "Permission denied")


class RemoteFileSystem(LocalFileSystem):
    """A read-only `remote://` file system whose files are local files."""

    @classmethod
    def scheme(cls) -> str:
        return "remote"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *paths])

    def exists(self, path: str) -> bool:
        return os.path.exists(path.removeprefix("remote:/"))

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        for found in super()._list(dir_or_prefix.removeprefix("remote:/")):
            yield FileMetadata("remote:/" + found.path, found.size_in_bytes)

    def open(self, path: str, *args: object, **kwargs: object) -> object:
        return super().open(path.removeprefix("remote:/"), *args, **kwargs)


def test_other_file_systems_are_read_through_beam(tmp_path: Path) -> None:
    write(tmp_path, "in/a.bz2", bz2.compress(b"content"))
    write(tmp_path, "in/_SUCCESS")
    base = f"remote:/{tmp_path}/in"
    (path,) = find_files(base, "*")
    assert path == base + "/a.bz2"
    with open_bytes(path) as stream:
        assert stream.read() == b"content"


# ---- open_bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archives")


@pytest.mark.parametrize("suffix", COMPRESS)
@settings(max_examples=40)
@given(parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=4), size=st.integers(1, 5000))
def test_archives_of_many_members_are_read_whole(
    folder: Path, suffix: str, parts: list[bytes], size: int
) -> None:
    compress = COMPRESS[suffix]
    prefix = b"not an archive "
    data = b"".join(compress(part if suffix else prefix + part) for part in parts)
    # The name is irrelevant: only the content counts.
    path = write(folder, "plain-name", data)
    expected = b"".join(parts) if suffix else data
    assert read_until_damage(path, size) == (expected, None)


@pytest.mark.parametrize("suffix", ARCHIVES)
@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 3_000_000])
def test_sizes_around_the_steps(folder: Path, suffix: str, size: int) -> None:
    noise = random.Random(size).randbytes(size)
    # Three members: one that does not shrink, one that shrinks a thousandfold, one more.
    data = b"".join(COMPRESS[suffix](part) for part in (noise, b"a" * size, noise[:1000]))
    content, damage = read_until_damage(write(folder, "sizes", data), 1 << 20)
    assert (content == noise + b"a" * size + noise[:1000], damage) == (True, None)


def skippable(number: int, content: bytes) -> bytes:
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
def test_skippable_zstd_frames_are_skipped_wherever_they_are(
    folder: Path, parts: list[bytes | tuple[int, bytes]], size: int
) -> None:
    compress = COMPRESS[".zst"]
    data = b"".join(
        compress(part) if isinstance(part, bytes) else skippable(*part) for part in parts
    )
    # The name is irrelevant: only the content counts.
    path = write(folder, "plain-name", data)
    expected = b"".join(part for part in parts if isinstance(part, bytes))
    assert read_until_damage(path, size) == (expected, None)


@settings(max_examples=40)
@given(
    kinds=st.lists(st.sampled_from(ARCHIVES), min_size=2, max_size=2),
    content=st.binary(max_size=99),
)
def test_an_archive_is_read_whatever_its_name(
    folder: Path, kinds: list[str], content: bytes
) -> None:
    packed, named = kinds
    path = write(folder, "reviews.csv" + named, COMPRESS[packed](content))
    assert read_until_damage(path) == (content, None)


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_a_plain_file_is_read_whatever_its_name(folder: Path, suffix: str) -> None:
    path = write(folder, "reviews.csv" + suffix, b"plain text")
    assert read_until_damage(path) == (b"plain text", None)


def test_a_truncated_skippable_frame_is_damage(folder: Path) -> None:
    path = write(folder, "cut.zst", skippable(0, bytes(100))[:50])
    data, damage = read_until_damage(path)
    assert (data, damage and damage.position) == (b"", 50)


@pytest.mark.parametrize("count", [1, 70_000, 140_000])
def test_zeros_after_and_between_gzip_members(folder: Path, count: int) -> None:
    path = write(folder, "zeros", (gzip.compress(b"ab" * 9) + b"\0" * count) * 2)
    assert read_until_damage(path) == (b"ab" * 18, None)


@pytest.mark.parametrize("suffix", ARCHIVES)
@settings(max_examples=60)
@given(content=st.binary(min_size=1, max_size=2000), where=st.floats(0, 1, exclude_max=True))
def test_a_truncated_archive_yields_its_content(
    folder: Path, suffix: str, content: bytes, where: float
) -> None:
    archive = COMPRESS[suffix](content)
    cut = int(where * len(archive))
    path = write(folder, "cut" + suffix, archive[:cut])
    try:
        data, damage = read_until_damage(path)
    except CorruptArchive as too_short:
        data, damage = b"", too_short
    assert damage is not None and damage.position == cut
    assert content.startswith(data)
    assert f"byte {cut:,} of the compressed file" in str(damage)


@pytest.mark.parametrize("suffix", ARCHIVES)
@settings(max_examples=60)
@given(content=st.binary(max_size=3000), where=st.floats(0, 1), wrong=st.binary(min_size=1))
def test_garbage_is_an_error_after_the_content_before_it(
    folder: Path, suffix: str, content: bytes, where: float, wrong: bytes
) -> None:
    good = COMPRESS[suffix](content)
    bad = bytearray(COMPRESS[suffix](content[::-1]))
    at = 4 + int(where * (len(bad) - 4))
    bad[at : at + len(wrong)] = wrong
    data, damage = read_until_damage(write(folder, "garbage", good + bytes(bad)))
    assert data.startswith(content)
    if damage is not None:
        assert len(good) <= damage.position <= len(good) + len(bad)


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_garbage_after_the_archive_is_damage(folder: Path, suffix: str) -> None:
    good = COMPRESS[suffix](b"good " * 100)
    data, damage = read_until_damage(write(folder, "after", good + b"<html>not found</html>"))
    assert data == b"good " * 100
    assert damage is not None and len(good) < damage.position <= len(good) + 22


@pytest.mark.parametrize("line", [b"%07d the same text again and again\n", b"%07d\n"])
def test_every_bz2_block_before_the_damage_is_read(folder: Path, line: bytes) -> None:
    content = b"".join(line % number for number in range(200_000))
    # Level 1 has blocks of 100 kB, of which a step holds many: none may be lost.
    archive = bytearray(bz2.compress(content, 1))
    at = len(archive) * 9 // 10
    archive[at : at + 64] = bytes(64)
    data, damage = read_until_damage(write(folder, "blocks", bytes(archive)), 1 << 20)
    assert damage is not None and at <= damage.position < at + len(archive) // 10
    whole_blocks = len(content) * 9 // 10 - 200_000
    assert data[:whole_blocks] == content[:whole_blocks]
    assert len(data) > whole_blocks


def test_damage_is_raised_again_and_survives_pickling(folder: Path) -> None:
    path = write(folder, "again", bz2.compress(b"some text")[:-3])
    with open_bytes(path) as stream:
        for _ in range(2):
            with pytest.raises(CorruptArchive) as error:
                while stream.read(1):
                    pass
    damage = pickle.loads(pickle.dumps(error.value))
    assert (damage.path, damage.position, str(damage)) == (
        path,
        error.value.position,
        str(error.value),
    )
    assert str(pickle.loads(pickle.dumps(InputError("a\nb")))) == "a b"


def test_a_decompressed_stream_works_with_the_standard_library(folder: Path) -> None:
    path = write(folder, "wrapped", gzip.compress(b"a\nb\n"))
    with open_bytes(path) as stream:
        assert list(io.BufferedReader(stream)) == [b"a\n", b"b\n"]  # type: ignore[type-var]


def test_a_file_that_cannot_be_opened_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError) as error:
        open_bytes(str(folder / "missing"))
    one_line(error, str(folder / "missing"), "No such file")
    with pytest.raises(InputError) as error:
        open_bytes(str(folder))
    one_line(error, str(folder), "directory")
    archive = write(folder, "archive.csv", b"PK\x03\x04 and more")
    with pytest.raises(InputError) as error:
        open_bytes(archive)
    one_line(error, archive, "zip archive", "unpack")
    packed = write(folder, "x.zst", COMPRESS[".zst"](b"x"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError) as error:
        open_bytes(packed)
    one_line(error, packed, "zstandard")
