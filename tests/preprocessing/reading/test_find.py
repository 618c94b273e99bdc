"""The files of an input: each is read once, and all are fingerprinted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import InputError
from preprocessing.reading.files import find_sources, fingerprint
from tests.preprocessing.reading.review_files import one_line


def write(folder: Path, *names: str, content: str = "x") -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def names(folder: Path, **patterns: str) -> list[tuple[str, str]]:
    found = find_sources(str(folder), patterns)
    return [(file.group, os.path.relpath(file.path, folder)) for file in found]


def test_a_file_of_two_groups_is_read_once_for_the_held_out_one(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "b.csv", "test.csv", "eval.csv")
    held_out = [("eval", "eval.csv"), ("test", "test.csv")]
    train = [("train", "a.csv"), ("train", "b.csv")]
    patterns = {"train": "*.csv", "eval": "[et]*.csv", "test": "test.csv"}
    assert names(tmp_path, **patterns) == train + held_out
    backwards = dict(reversed(patterns.items()))
    assert sorted(names(tmp_path, **backwards)) == sorted(train + held_out)


def test_a_split_whose_files_are_all_in_another_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.csv")
    with pytest.raises(InputError) as error:
        find_sources(str(tmp_path), {"train": "*.csv", "test": "a.csv"})
    one_line(error, "data.splits.train", "'*.csv'", str(tmp_path / "a.csv"), "data.splits.test")


@pytest.mark.parametrize("folder", ["reviews", "reviews[2018]"])
def test_the_fingerprint_changes_with_every_file_that_is_read(tmp_path: Path, folder: str) -> None:
    base = tmp_path / folder
    write(base, "a.csv", "deep/b.csv", "deep/er/c.csv", "other.txt", content="12345")

    def now() -> str:
        return fingerprint(str(base), find_sources(str(base), {"all": "**/*.csv"}))

    before = now()
    assert before.startswith("num_files:3,total_bytes:15,")
    assert now() == before
    write(base, "other.txt", content="something else")
    assert now() == before
    seen = {before}
    for name in ("a.csv", "deep/b.csv", "deep/er/c.csv"):
        status = (base / name).stat()
        os.utime(base / name, (status.st_atime, status.st_mtime + 1))
        seen.add(now())
        write(base, name, content="123456")
        seen.add(now())
    (base / "a.csv").rename(base / "d.csv")
    seen.add(now())
    write(base, "deep/new/e.csv")
    seen.add(now())
    (base / "deep/b.csv").unlink()
    seen.add(now())
    assert len(seen) == 10
    moved = tmp_path / "moved"
    base.rename(moved)
    assert fingerprint(str(moved), find_sources(str(moved), {"all": "**/*.csv"})) == (
        fingerprint(str(moved) + "/", find_sources(str(moved) + "/", {"all": "**/*.csv"}))
    )
