"""Finding, opening and decompressing files: every archive, every kind of damage, every edge."""

import ast
import bz2
import glob as stdlib_glob
import gzip
import os
import pickle
import random
import re
import shlex
import struct
from functools import cache
from pathlib import Path

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import sample_data
from core.errors import InputError
from preprocessing.fast.bz2_blocks import find_marks
from preprocessing.reading import archives, files, globs, open_files
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.open_files import open_bytes
from tests.preprocessing.reading.review_files import COMPRESS, one_line, write

ARCHIVES = [suffix for suffix in COMPRESS if suffix]


def read_until_damage(path, size=1000):
    """Return the content of a file, read by `size` bytes, and the damage that ended it."""
    data = b""
    with open_bytes(path) as stream:
        try:
            while part := stream.read(size):
                data += part
        except CorruptArchive as damage:
            return data, damage
    return data, None


# ---- find_files


def find_files(base, pattern):
    """Return the paths of the files that `find_files` finds."""
    return [file.path for file in files.find_files(base, pattern)]


NAMES = ["a", "b.csv", "]", "-", "d/a", "d/b.csv", "d/e/a", "d[1]/a", "d/e/f/b.csv"]
NAMES += ["_a", ".a", "d/_b.csv", "d/.e/a", "_d/a", "_d/_e/b.csv", "d/e/_/a", "d/e/.d/.b.csv"]
TOKENS = [
    "*",
    "?",
    "[ab]",
    "[!a]",
    "[a-c]",
    "[]d]",
    "[!]x]",
    "[",
    "a",
    "b",
    "d",
    "e",
    ".csv",
    "1]",
    "_",
    ".",
]
PART = st.just("**") | st.lists(st.sampled_from(TOKENS), min_size=1, max_size=3).map("".join)


def dotted(path):
    """Return the path or glob with a dot before the names that begin with . or _."""
    return "/".join(f".{name}" if name[0] in "._" else name for name in path.split("/"))


@pytest.fixture(scope="module")
def tree(folder):
    """A folder, and beside it one in which only the names with a dot are hidden."""
    for name in NAMES:
        write(folder, f"globs/{name}")
        write(folder, f"dotted/{dotted(name)}")
    return folder / "globs"


@pytest.mark.slow
@settings(max_examples=300)
@given(glob=st.lists(PART, min_size=1, max_size=4).map("/".join))
@example(glob="**/*")
@example(glob="d/**")
@example(glob="_*/**/_*")
def test_globs_match_like_the_standard_library(tree, glob):
    # In the standard library a set may contain a slash, and `a**` means `a*`.
    assume(not re.search(r"\[[^\]]*/", glob))
    assume(all(part == "**" or "**" not in part for part in glob.split("/")))
    assume(not {".", ".."} & {*glob.split("/")})
    other = tree.with_name("dotted")

    def expected(glob):
        # There `a/**` also matches `a/`, which is no file below `a`.
        pattern = dotted(f"{glob}/*" if glob.endswith("**") else glob)
        matched = stdlib_glob.glob(pattern, root_dir=other, recursive=True)
        return sorted(name for name in NAMES if dotted(name) in matched)

    found = [os.path.relpath(file.path, tree) for file in files.match_files(str(tree), glob)]
    assert found == (expected(glob) or expected(f"{glob}/**"))
    assert [name for name in sorted(NAMES) if globs.matches(name, glob)] == expected(glob)


def test_the_default_leaves_out_files_and_folders_that_are_not_data(tmp_path):
    names = (".hidden", "_SUCCESS", "README", "readme.txt", "notes.md", "LICENSE", "a.crc")
    folders = ("__MACOSX/a.csv", "2024/_temporary/a.csv", "lost+found/a.csv", ".git/objects/a")
    for name in (*names, *folders):
        write(tmp_path, name)
    kept = [write(tmp_path, name) for name in ("2024/part.csv", "part-0", "readmes.csv")]
    assert find_files(str(tmp_path), "**") == kept
    assert find_files(str(tmp_path), "*") == kept[1:]
    assert find_files(str(tmp_path), "README*") == [str(tmp_path / "README")]
    assert find_files(str(tmp_path), "_*") == [str(tmp_path / "_SUCCESS")]
    # The folder of the input itself may have such a name.
    assert find_files(str(tmp_path / ".git/objects"), "*") == [str(tmp_path / ".git/objects/a")]


DATA = ("license_keys.csv", "changelog.csv", "citation.jsonl", "license/1.txt", "citation/2.txt")
DATA += ("LICENSE.csv.gz", "licence-plates.parquet", "changelog.md.d/a.csv")
BACKUPS = (
    *("a.csv~", "#a.csv#", "a.csv.bak", "b.jsonl.orig", "a.csv.tmp", "part/a.csv.swp"),
    *("a.csv.bak.gz", "b.csv.crdownload"),
)
DOCUMENTS = ("LICENSE.txt", "CITATION.cff", "Licence", "changelog.html", "license/README.md")
DOCUMENTS += ("LICENSE-MIT", "README_EN.txt", "license_2.0.txt")
OF_PROGRAMS = (
    "~$a.csv",
    "@eaDir/a.csv",
    "#recycle/a.csv",
    "a.sha256",
    "_SUCCESS",
    ".hidden.csv",
    "_temporary/a.csv",
    "README.md.crc",
)


@pytest.mark.parametrize("depth", ["", "2024/deep/"])
def test_a_document_is_left_out_and_a_file_with_a_suffix_of_data_is_not(tmp_path, depth):
    named = (*DOCUMENTS, *BACKUPS, "_old.csv.gz")
    for name in (*named, *OF_PROGRAMS):
        write(tmp_path, f"{depth}{name}")
    kept = sorted(write(tmp_path, f"{depth}{name}") for name in DATA)
    assert find_files(str(tmp_path), "**") == kept
    assert find_files(str(tmp_path), f"{depth}**") == kept
    left_out = files.find_left_out(str(tmp_path), ["**"])
    assert left_out == sorted(f"{tmp_path}/{depth}{name}" for name in named)
    assert files.find_left_out(str(tmp_path), ["**/*.csv", f"{depth}LICENSE.txt"]) == []
    others = files.find_left_out(str(tmp_path), ["**", f"{depth}_old.csv.gz"])
    assert others == sorted(f"{tmp_path}/{depth}{name}" for name in (*DOCUMENTS, *BACKUPS))
    assert find_files(str(tmp_path), f"{depth}*.bak") == [f"{tmp_path}/{depth}a.csv.bak"]


def test_the_first_glob_that_matches_some_files_and_no_others_is_found():
    names, others = ["a/train.csv", "b/train.csv"], ["a/test.csv"]
    candidates = ["**/*.csv", "a/train.csv", "**/*train*", "**/train.csv"]
    assert globs.first_exact(candidates, names, others) == "**/*train*"
    assert globs.first_exact(candidates, names, [*others, "c/train.csv"]) is None


def test_documents_in_other_folders_than_those_of_the_globs_are_not_named(tmp_path):
    for name in ("train/a.csv", "train/README", "other/README", "README"):
        write(tmp_path, name)
    in_train = [str(tmp_path / "train/README")]
    for pattern in ("train", "train/**", "train/*", "tr*"):
        assert files.find_left_out(str(tmp_path), [pattern]) == in_train
    assert files.find_left_out(str(tmp_path), ["**/R*"]) == []


def test_a_glob_of_another_folder_matches_nothing_beside_hidden_files(tmp_path):
    write(tmp_path, "in/_SUCCESS")
    with pytest.raises(InputError, match=r"no file .* that matches '/elsewhere/a\.csv'"):
        find_files(str(tmp_path / "in"), "/elsewhere/a.csv")


def test_links_to_folders_are_followed_once(tmp_path):
    kept = [write(tmp_path, f"in/{name}") for name in ("a.csv", "deep/b.csv")]
    write(tmp_path, "elsewhere/c.csv")
    os.symlink(tmp_path / "elsewhere", tmp_path / "in/deep/a link")
    os.symlink(tmp_path / "in", tmp_path / "in/deep/loop")
    os.symlink(tmp_path / "in/deep", tmp_path / "in/another name")
    linked = str(tmp_path / "in/deep/a link/c.csv")
    assert find_files(str(tmp_path / "in"), "**") == [kept[0], linked, kept[1]]


def test_a_link_to_itself_is_named(tmp_path):
    kept = write(tmp_path, "a.csv")
    os.symlink("b.csv", tmp_path / "b.csv")
    with pytest.raises(InputError) as error:
        find_files(str(tmp_path), "**")
    one_line(error, f"{tmp_path}/b.csv is a symbolic link to b.csv, which is missing: ")
    assert find_files(str(tmp_path), "a.*") == [kept]


def test_a_link_without_a_target_is_named(tmp_path):
    write(tmp_path, "a.csv")
    os.symlink(tmp_path / "gone", tmp_path / "b.csv")
    gone = f"{tmp_path}/b.csv is a symbolic link to {tmp_path}/gone, which is missing: restore the "
    for base, pattern in ((tmp_path, "**"), (tmp_path, "b.csv"), (tmp_path / "b.csv", "**")):
        with pytest.raises(InputError) as error:
            find_files(str(base), pattern)
        one_line(error, gone)
    os.remove(tmp_path / "b.csv")
    os.symlink("../.git/annex/objects/Xx/Yy/SHA256E-s1.csv/SHA256E-s1.csv", tmp_path / "b.csv")
    with pytest.raises(InputError, match="which is missing: fetch the content with `git annex get"):
        find_files(str(tmp_path), "**")
    os.symlink(tmp_path / "gone", tmp_path / "README")
    assert files.find_left_out(str(tmp_path), ["**"]) == [str(tmp_path / "README")]
    assert find_files(str(tmp_path), "a*") == [str(tmp_path / "a.csv")]


@pytest.mark.parametrize(
    ("base", "pattern", "parts"),
    [
        ("{}/missing", "*", ["{}/missing", "does not exist", "data.input_base"]),
        ("{}/missing", "train.ft.txt.bz2", ["does not exist", "`amazon-reviews data fetch`"]),
        ("{}", "train.ft.txt.bz2", ["no file of texts", "`amazon-reviews data fetch`"]),
        ("{}/x.csv", "*", ["{}/x.csv is a file", "`amazon-reviews data check {}/x.csv`"]),
        ("{}", "*.json", ["{}", "'*.json'", "data.splits"]),
        ("nothing://bucket/folder", "*", ["nothing://bucket/folder", "cannot be listed"]),
        (
            "s3://bucket/folder",
            "*",
            ["s3://bucket/folder cannot be listed: it must be the path of a local folder or a gs:"],
        ),
        (" ", "*", ["data.input_base"]),
    ],
)
def test_errors_of_find_files_are_one_line(tmp_path, base, pattern, parts):
    write(tmp_path, "x.csv")
    with pytest.raises(InputError) as error:
        find_files(base.format(tmp_path), pattern)
    one_line(error, *(part.format(tmp_path) for part in parts))


def test_the_error_of_a_bucket_is_that_of_the_cloud_client_alone(monkeypatch):
    def refuse(patterns):
        cause = PermissionError("403 no access")
        inner = BeamIOError("List operation failed", {patterns[0]: cause})
        raise BeamIOError("Match operation failed", {patterns[0]: inner})

    monkeypatch.setattr(FileSystems, "match", refuse)
    with pytest.raises(InputError) as error:
        find_files("gs://bucket/folder", "**")
    assert str(error.value) == (
        "gs://bucket/folder cannot be listed: 403 no access; it must be a folder or a gs:// prefix "
        "that this user or service account may read"
    )


SPARK = ("_SUCCESS", "._SUCCESS.crc", ".part-0.parquet.crc", "_committed_1", "_started_1")
SPARK += ("_metadata", "_common_metadata", "_temporary/0/task/part-9.parquet")
COPIES = (
    ".ipynb_checkpoints/part-checkpoint.parquet",
    "._part-0.parquet",
    ".~lock.part-0.parquet#",
)
COPIES += (".DS_Store", "Thumbs.db", "README.md", "checksums.md5", "a.csv.dvc")


@pytest.mark.parametrize("scheme", ["", "remote:/"])
@pytest.mark.parametrize("above", ["", "deep/er/"])
def test_the_folders_of_spark_are_read_by_every_glob(tmp_path, scheme, above):
    for name in ("part-0.parquet", "year=2018/part-1.parquet", *SPARK, *COPIES):
        write(tmp_path, f"{above}train.parquet/{name}")
    if scheme:
        write(tmp_path, f"{above}train.parquet_$folder$")
    base = f"{scheme}{tmp_path}"
    folder = f"{base}/{above}train.parquet"
    both = [f"{folder}/part-0.parquet", f"{folder}/year=2018/part-1.parquet"]
    for glob in ("", "/", "/**", "/**/*", "/**/*.parquet", "/**/part*"):
        assert find_files(base, f"{above}train.parquet{glob}") == both
    for glob in ("**", "**/*.parquet", "**/train.parquet/**", f"./{above}train.parquet"):
        assert find_files(base, glob) == both
    assert find_files(base, f"{above}train.parquet/*") == both[:1]
    assert find_files(base, f"{above}train.parquet/*/*") == both[1:]
    assert find_files(base, f"{above}train.parquet/_SUCCESS") == [f"{folder}/_SUCCESS"]
    assert [file.path for file in files.find_sources(base, {"train": f"{above}t*"})] == both


TABLES = {
    "_delta_log/00000000000000000000.json": ("Delta Lake", 'DeltaTable("{}")'),
    "metadata/v9.metadata.json": ("Iceberg", 'from_metadata("{}/metadata/v10.metadata.json")'),
    ".hoodie/hoodie.properties": ("Hudi", "spark.read.format('hudi').load(\"{}\")"),
    "schema/schema-0": ("Paimon", "spark.read.format('paimon').load(\"{}\")"),
    "_versions/1.manifest": ("Lance", 'lance.dataset("{}")'),
}


@pytest.mark.parametrize("scheme", ["", "remote:/"])
@pytest.mark.parametrize("marker", TABLES)
def test_the_folder_of_a_table_is_refused_wherever_it_is(tmp_path, scheme, marker):
    write(tmp_path, "in/good.parquet")
    for name in (marker, "data/year=2018/part-0.parquet", "part-0.parquet"):
        write(tmp_path, f"in/deep/table/{name}")
    if marker.startswith("metadata"):
        write(tmp_path, "in/deep/table/metadata/v10.metadata.json")
    base, table = f"{scheme}{tmp_path}/in", f"{scheme}{tmp_path}/in/deep/table"
    name, command = TABLES[marker]
    for inside, glob in (
        ("", "**"),
        ("", "deep/table"),
        ("", "deep/table/data/*/*"),
        ("", "deep/table/p*"),
        ("/deep", "table/**/*.parquet"),
        ("/deep/table", "**"),
        ("/deep/table", "data/year=2018/*.parquet"),
    ):
        with pytest.raises(InputError) as error:
            find_files(f"{base}{inside}", glob)
        one_line(error, f"{table} is a table of {name}", "removed rows", command.format(table))
    if not scheme:
        with pytest.raises(InputError, match=f"{table} is a table of {name}"):
            find_files(f"{table}/data/year=2018", "*")
    # Files outside of the table are read, and so is a file that is named in full.
    assert find_files(base, "*") == [f"{base}/good.parquet"]
    named = "deep/table/part-0.parquet"
    assert find_files(base, named) == [f"{base}/{named}"]


@pytest.mark.parametrize("marker", ["_delta_log/0.json", "_versions/1.manifest"])
def test_the_command_for_a_table_is_valid_whatever_the_name_of_its_folder_is(tmp_path, marker):
    table = """it's "$(false)" \\n `here`"""
    for name in (marker, "part-0.parquet"):
        write(tmp_path, f"{table}/{name}")
    with pytest.raises(InputError) as error:
        find_files(str(tmp_path), "**")
    command = str(error.value).partition(" with `")[2].removesuffix("` and read the exported files")
    _, _, code = shlex.split(command)
    constants = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert f"{tmp_path}/{table}" in constants


class RemoteFileSystem(LocalFileSystem):
    """A read-only `remote://` file system whose files are local files."""

    @classmethod
    def scheme(cls):
        return "remote"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def _list(self, dir_or_prefix):
        for found in super()._list(dir_or_prefix.removeprefix("remote:/")):
            yield FileMetadata("remote:/" + found.path, found.size_in_bytes)

    def open(self, path, *args, **kwargs):
        return super().open(path.removeprefix("remote:/"), *args, **kwargs)


def test_other_file_systems_are_read_through_beam(tmp_path):
    write(tmp_path, "in/a.bz2", bz2.compress(b"content"))
    write(tmp_path, "in/_SUCCESS")
    write(tmp_path, "in/2024/b.csv")
    base = f"remote:/{tmp_path}/in"
    assert find_files(base, "**") == [base + "/2024/b.csv", base + "/a.bz2"]
    (path,) = find_files(base, "*")
    assert path == base + "/a.bz2"
    write(tmp_path, "in/2024/README")
    assert files.find_left_out(base, ["2024"]) == [base + "/2024/README"]
    with open_bytes(path) as stream:
        assert stream.read() == b"content"


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_url_of_a_file_is_no_folder_without_files(tmp_path, slash):
    assert RemoteFileSystem.scheme() == "remote"
    write(tmp_path, "in/a b[1].csv")
    base = f"remote:/{tmp_path}/in"
    with pytest.raises(InputError) as error:
        find_files(f"{base}/a b[1].csv{slash}", "**")
    settings = f'set data.input_base: {base} and data.splits: {{train: "a b[[]1].csv"}}'
    one_line(error, f"{base}/a b[1].csv is a file: data.input_base must be its folder", settings)
    assert find_files(base, "a b[[]1].csv") == [f"{base}/a b[1].csv"]
    with pytest.raises(files.NoFilesError):
        find_files(f"{base}/a", "**")


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # opening it would block
    for path, problem in [
        (*find_files(str(tmp_path), "*"), "is not a regular file"),
        (f"{tmp_path}/missing", "cannot be opened: No such file"),
    ]:
        with pytest.raises(InputError) as error:
            open_bytes(path)
        one_line(error, f"{path} {problem}")
    write(tmp_path, os.fsdecode(b"caf\xe9.csv"))
    with pytest.raises(InputError, match=r"caf\\udce9\.csv' is not UTF-8: rename"):
        open_bytes(*find_files(str(tmp_path), "caf*"))


# ---- find_sources


def sources(folder, **patterns):
    found = files.find_sources(str(folder), patterns)
    return [(file.group, os.path.relpath(file.path, folder)) for file in found]


def test_a_file_of_two_groups_is_read_once_for_the_held_out_one(tmp_path):
    for name in ("a.csv", "b.csv", "test.csv", "eval.csv"):
        write(tmp_path, name)
    held_out = [("eval", "eval.csv"), ("test", "test.csv")]
    train = [("train", "a.csv"), ("train", "b.csv")]
    patterns = {"train": "*.csv", "eval": "[et]*.csv", "test": "test.csv"}
    assert sources(tmp_path, **patterns) == train + held_out
    backwards = dict(reversed(patterns.items()))
    assert sorted(sources(tmp_path, **backwards)) == sorted(train + held_out)


def test_a_split_whose_files_are_all_in_another_one_is_refused(tmp_path):
    write(tmp_path, "a.csv")
    with pytest.raises(InputError) as error:
        files.find_sources(str(tmp_path), {"train": "*.csv", "test": "a.csv"})
    one_line(error, "data.splits.train", "'*.csv'", "another split")


def test_the_fingerprint_changes_with_every_file_that_is_read(tmp_path):
    base = tmp_path / "reviews[2018]"
    for name in ("a.csv", "deep/er/c.csv", "other.txt"):
        write(base, name, b"12345")

    def now(base=str(base)):
        return files.fingerprint(base, files.find_sources(base, {"all": "**/*.csv"}))

    seen = {now()}
    assert min(seen).startswith("num_files:2,total_bytes:10,")
    write(base, "other.txt", b"something else")
    seen.add(now())
    os.utime(base / "a.csv", (0, 1))
    seen.add(now())
    write(base, "deep/er/c.csv", b"123456")
    seen.add(now())
    (base / "a.csv").rename(base / "d.csv")
    seen.add(now())
    assert len(seen) == 3  # The time alone changes nothing.
    write(base, "d.csv", b"54321")
    os.utime(base / "d.csv", (0, 1))
    seen.add(now())
    assert len(seen) == 4
    base.rename(tmp_path / "moved")
    assert now(f"{tmp_path}/moved") == now(f"{tmp_path}/moved/")


def test_the_fingerprint_contains_the_split_of_each_file(tmp_path):
    names = ("a.csv", "b.csv")
    for name in names:
        write(tmp_path, name, b"12345")
    base = str(tmp_path)
    train_first, test_first = (
        files.fingerprint(base, files.find_sources(base, dict(zip(groups, names, strict=True))))
        for groups in (("train", "test"), ("test", "train"))
    )
    assert train_first != test_first


def test_only_the_file_itself_is_deleted(monkeypatch):
    deleted = []
    monkeypatch.setattr(FileSystems, "delete", deleted.extend)
    open_files.delete_file("gs://bucket/a[1].csv")
    assert deleted == ["gs://bucket/a[[]1].csv"]


# ---- archives


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


def test_skippable_zstd_frames_are_skipped_wherever_they_are(folder):
    one, two = (COMPRESS[".zst"](content) for content in (b"one", b"two"))
    parts = [skippable(0, bytes(4)), one, skippable(15, b""), two, skippable(3, bytes(200_000))]
    assert read_until_damage(write(folder, "plain-name", b"".join(parts))) == (b"onetwo", None)


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_garbage_after_the_archive_is_damage(folder, suffix):
    good = COMPRESS[suffix](b"good " * 100)
    data, damage = read_until_damage(write(folder, "after", good + b"<html>not found</html>"))
    assert data == b"good " * 100
    assert damage is not None and damage.delivered == len(good)


def test_zeros_behind_a_gzip_archive_are_padding(folder):
    """Tapes write them; `gzip -t` and Python's gzip module accept them."""
    one, two = gzip.compress(b"one"), gzip.compress(b"two")
    for zeros in (bytes(1), bytes(30_000)):
        path = write(folder, "tape", one + zeros + two + zeros)
        assert read_until_damage(path) == (b"onetwo", None)
        content, damage = read_until_damage(write(folder, "tape", one + zeros + b"x"))
        assert content == b"one" and damage.delivered == len(one)
    for suffix in (".bz2", ".zst"):
        good = COMPRESS[suffix](b"one")
        content, damage = read_until_damage(write(folder, "tape", good + bytes(30_000)))
        assert content == b"one" and damage.delivered == len(good)


TEXT = (Path(sample_data.__file__).parent / "reviews.ft.txt").read_bytes()[:600_000]


@cache
def real_archive(suffix):
    """Return an archive of real text, its content, and for each of its beginnings, by size, the
    size of the content and the byte at which its last complete block or member ends."""
    parts = (TEXT[:400_000], b"", b"same " * 60_000, TEXT[400_000:])
    compress = (lambda part: bz2.compress(part, 1)) if suffix == ".bz2" else COMPRESS[suffix]
    archive, found = b"".join(map(compress, parts)), [(0, 0)]
    codec = archives._CODECS[archives._SUFFIXES[suffix]]
    decoder = codec.new_decoder()
    for number, byte in enumerate(archive, 1):
        size, end = found[-1]
        content = decoder.decompress(bytes([byte]))
        while not decoder.eof and (rest := decoder.decompress(b"")):
            content += rest
        found.append((size + len(content), number if content or decoder.eof else end))
        decoder = codec.new_decoder() if decoder.eof else decoder
    return archive, b"".join(parts), found


@pytest.mark.parametrize("suffix", ARCHIVES)
@settings(max_examples=60)
@given(where=st.floats(0, 1), step=st.sampled_from([50, 1000, archives._STEP]))
@example(where=1, step=archives._STEP)
def test_what_a_truncated_archive_does_not_deliver_counts_as_lost(folder, suffix, where, step):
    archive, whole, found = real_archive(suffix)
    cut = max(1, round(where * (len(archive) - 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "_STEP", step)
        content, damage = read_until_damage(write(folder, f"cut{suffix}", archive[:cut]), 100_000)
    size, end = found[cut]
    assert content == whole[:size]
    if damage is None:
        assert end == cut  # the cut is between two members
    else:
        assert f"truncated at byte {cut:,} of" in str(damage)
        assert end - step <= damage.delivered <= end and damage.delivered < cut


def test_an_archive_that_is_cut_behind_a_block_delivers_the_whole_block(tmp_path):
    archive = bz2.compress(TEXT, 1)
    _, first, *_ = find_marks(archive)
    cut = -(-first // 8)
    alone = bz2.BZ2Decompressor().decompress(archive[:cut])
    assert len(alone) == 32 << 10, "bz2 of the standard library returns the block at once"
    content, damage = read_until_damage(write(tmp_path, "cut.bz2", archive[:cut]))
    assert len(content) > 99_000
    assert TEXT.startswith(content)
    assert damage is not None


@pytest.mark.parametrize("suffix", ARCHIVES)
@settings(max_examples=60)
@given(where=st.floats(0, 1))
def test_what_is_not_delivered_of_a_damaged_archive_counts_as_lost(folder, suffix, where):
    archive, whole, found = real_archive(suffix)
    at = 4 + round(where * (len(archive) - 5))
    hit = archive[:at] + bytes(byte ^ 0xFF for byte in archive[at : at + 40]) + archive[at + 40 :]
    content, damage = read_until_damage(write(folder, f"hit{suffix}", hit), 100_000)
    assert damage is not None
    again = pickle.loads(pickle.dumps(damage))
    assert (again.args, str(again)) == (damage.args, str(damage))
    size, _ = found[min(at, damage.delivered)]
    assert len(content) >= size and content[:size] == whole[:size]
    _, end = found[max(0, at - archives._STEP)]
    assert damage.delivered >= end - archives._STEP


def test_a_glob_with_characters_that_mean_something_else_is_explained(tmp_path):
    (tmp_path / "part [1].csv").write_bytes(b"x")
    with pytest.raises(InputError, match=r"to name the file itself, write 'part \[\[\]1\]\.csv'$"):
        files.find_files(str(tmp_path), "part [1].csv")
    assert files.find_files(str(tmp_path), "part [[]1].csv")
    with pytest.raises(InputError, match=r"braces are no part of a glob"):
        files.find_files(str(tmp_path), "{a,b}.csv")
    with pytest.raises(InputError, match=r"only matches a glob that begins so\)$"):
        files.find_files(str(tmp_path), "*.tsv")
