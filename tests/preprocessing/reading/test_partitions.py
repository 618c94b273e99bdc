"""Labels that only the names of folders have, as Spark and Hive write partitions."""

import re
import subprocess
import sys

import pytest

from core.errors import InputError
from preprocessing.reading.files import find_sources
from preprocessing.reading.layouts import decide_layouts
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import Review, as_file, read, write

OPTIONAL = ReadOptions(reads_labels=False)


def partitioned(folder, kind, key="rating", values=(1, 2, 5), **more):
    for value in values:
        texts = [f"text {value} {n}" for n in range(4)]
        columns = {"text": texts, **{name: [each] * 4 for name, each in more.items()}}
        write(folder, f"{key}={value}/part-0.{kind}", as_file(kind, columns))


def layouts(folder, options=None):
    files = find_sources(str(folder), {"all": "**"})
    return decide_layouts(files, options or ReadOptions())


def problem(folder, options=None):
    with pytest.raises(InputError) as error:
        layouts(folder, options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("rating", ReadOptions()),
        ("Label", ReadOptions(task="each", classes=())),
        ("topic", ReadOptions(columns={"label": "topic"})),
        ("sentiment", ReadOptions()),
    ],
)
def test_a_label_in_the_names_of_folders_is_named(tmp_path, kind, key, options):
    partitioned(tmp_path, kind, key)
    found = problem(tmp_path, options)
    assert found.startswith(
        f"{tmp_path}/{key}=1/part-0.{kind} has no column `{key}`, which only the names of its "
        f"folders have ({key}=1, {key}=2, {key}=5), as Spark and Hive write them: write the column "
        "into the files"
    )
    # Without labels the files can be read.
    assert {layout.columns.label for layout in layouts(tmp_path, OPTIONAL)} == {None}


def test_another_label_in_the_files_is_read_only_if_it_is_set(tmp_path):
    partitioned(tmp_path, "parquet", score=4)
    end = "read only the new ones; if the label is `score`, set data.columns.label to it"
    assert problem(tmp_path).endswith(end)
    found = layouts(tmp_path, ReadOptions(columns={"label": "score"}))
    assert {layout.columns.label for layout in found} == {"score"}


@pytest.mark.parametrize("name", ["in", """it's "$(false)" \\n in"""])
def test_the_command_writes_the_column_into_a_file(tmp_path, name):
    partitioned(tmp_path / name, "parquet")
    command = re.search("`(python3 .*)`", problem(tmp_path / name))[1]
    new = str(tmp_path / "new.parquet")
    command = command.replace("python3", sys.executable, 1).replace("NEW_FILE", new)
    subprocess.run(command, shell=True, check=True)
    labels = [record.label for record in read(new) if isinstance(record, Review)]
    assert labels == [0] * 8 + [1] * 4


@pytest.mark.parametrize(
    ("key", "values", "more"),
    [
        ("year", (2023, 2024), {"rating": 5}),
        ("rating", (1, 5), {"rating": 4}),
        # One folder is no partition by the label.
        ("label", ("v2",), {"rating": 4}),
    ],
)
def test_other_folders_are_read(tmp_path, key, values, more):
    partitioned(tmp_path, "jsonl", key, values, **more)
    assert {layout.columns.label for layout in layouts(tmp_path)} == {"rating"}


def test_files_that_lack_a_text_keep_their_error(tmp_path):
    for value in (1, 5):
        path = f"rating={value}/part-0.csv"
        write(tmp_path, path, f"shop,price\na,{value}\nb,2\n")
    assert "has no columns with known names: its columns are shop, price" in problem(tmp_path)
