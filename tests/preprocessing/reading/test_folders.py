"""What is in a folder, on this machine and in a file system of Beam."""

import re

import pytest

from core.errors import InputError
from preprocessing.reading.files import find_file
from preprocessing.reading.folders import list_below
from tests.preprocessing.reading.test_files import RemoteFileSystem


@pytest.mark.parametrize("prefix", ["", "remote:/"])
def test_the_names_of_a_depth_are_listed_in_folders_of_interest_alone(tmp_path, prefix):
    assert RemoteFileSystem.scheme() == "remote"
    for path in ("day-1/v1/a.csv", "day-1/v2/b/c.csv", "day-2.csv", "other/v1/a.csv"):
        file = tmp_path / "in[1]" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    base = f"{prefix}{tmp_path}/in[1]"

    def names(depth):
        return sorted(list_below(base, depth, lambda parts: parts[0].startswith("day")))

    assert names(1) == [("day-1",), ("day-2.csv",)]
    assert names(2) == [("day-1", "v1"), ("day-1", "v2")]
    assert find_file(f"{base}/day-1") is None
    found = find_file(f"{base}/day-2.csv")
    assert (found.path, found.size) == (f"{base}/day-2.csv", len("day-2.csv"))


def test_a_folder_that_is_missing_is_one_line(tmp_path):
    with pytest.raises(InputError, match="missing does not exist; set the folder that"):
        list(list_below(str(tmp_path / "missing"), 1, lambda parts: True))


def test_a_folder_that_cannot_be_listed_has_the_reason_once(tmp_path):
    file = tmp_path / "a"
    file.write_text("")
    problem = f"data.input_base: {file} cannot be listed: Not a directory; it must be a folder"
    with pytest.raises(InputError, match=re.escape(problem)):
        list(list_below(str(file), 1, lambda parts: True))
