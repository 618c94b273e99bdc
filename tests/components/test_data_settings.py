"""Every setting of the section `data` reaches the reader of the files."""

import csv
from collections import Counter

import pytest

from pipeline.config import Data, load_config
from pipeline.pipeline import create_pipeline
from platforms.local.platform import Local
from tests.components.example_gen import Read

pytestmark = pytest.mark.slow

SETTINGS = {
    "format": "csv",
    "columns": "{label: given, title: head, text: said}",
    "labels": "{1: 0, 2: 0, neutral: 1}",
    "splits": "{train: 'tr*', test: 'te*'}",
    "max_examples": "{train: 5}",
    "max_rejected_fraction": "0.25",
    "statistics_examples": "7",
}


def write(path, rows):
    """Write a file whose content is read differently if one of the settings is missing.

    The content resembles fastText, other columns have known names, and the labels resemble the
    scale one_two.
    """
    # The columns with known names contain other values.
    table = [(*row, 5, "another title", "another text") for row in rows]
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["given", "head", "said", "rating", "title", "text"])
        out.writerows(table)


def row(number):
    """Return a row of the file. Every fourth row has no valid label, and is rejected."""
    label = ("1", "2", "neutral", "x")[number % 4]
    return label, f"Head {number}", f"It is\n__label__2 number {number}"


def expected(number):
    label, head, said = row(number)
    return {"1": 0, "2": 0, "neutral": 1}[label], f"{head}: {said}".encode()


def found(example):
    feature = example.features.feature
    return feature["label"].int64_list.value[0], feature["text"].bytes_list.value[0]


def test_every_setting_of_the_data_reaches_its_reader(tmp_path):
    assert {"input_base", *SETTINGS} == set(Data.model_fields)
    inputs = tmp_path / "input"
    inputs.mkdir()
    write(inputs / "train.txt", map(row, range(100)))
    write(inputs / "test.txt", map(row, range(100, 120)))
    write(inputs / "other.txt", map(row, range(120, 140)))
    overrides = [f"paths.root={tmp_path / 'runs'}", f"data.input_base={inputs}"]
    overrides += [f"data.{name}={value}" for name, value in SETTINGS.items()]
    config = load_config(environ={"PIPELINE_SET": ",".join(overrides)})
    components = {item.id: item for item in create_pipeline(config, Local(config)).components}
    assert components["StatisticsGen"].exec_properties["max_examples"] == 7
    read = Read(tmp_path, components["ReviewExampleGen"].exec_properties)
    # 30 of 120 lines are exactly the fraction that `max_rejected_fraction` allows.
    assert read.counts["rejected/bad_label"] == 30
    usable = {number for number in range(120) if number % 4 != 3}
    examples = {split: Counter(map(found, read.splits[split])) for split in read.splits}
    assert examples["test"] == Counter(expected(n) for n in usable if n >= 100)
    assert examples["train"].total() == 5
    of_train = Counter(expected(n) for n in usable if n < 100)
    assert examples["train"] + examples["eval"] <= of_train
    assert examples["train"].total() + examples["eval"].total() == (
        of_train.total() - read.counts["over_max_examples"]
    )
