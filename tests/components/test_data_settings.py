"""Every setting of the section `data` reaches the reader of the files."""

import csv
from collections import Counter

import pytest

from core.errors import InputError
from pipeline.config import Data, load_config
from pipeline.pipeline import create_pipeline
from platforms.local.platform import Local
from tests.components.example_gen import Read

pytestmark = pytest.mark.slow

# Each row is read differently if one of the settings is missing: the content resembles fastText,
# columns with known names have other content, and the labels resemble the scale one_two.
SETTINGS = {
    "format": "csv",
    "columns": "{label: given, title: head, text: said}",
    "labels": "{1: 0, 2: 0, neutral: 1}",
    "splits": "{train: 'tr*', test: 'te*'}",
    "split_fractions": "{eval: 0.4}",
    "max_examples": "{train: 5}",
    "max_rejected_fraction": "0.25",
    "statistics_examples": "7",
    "span": "3",
}
LABELS = ("1", "2", "neutral", "x")


def expected(numbers):
    """Return label and text of the rows. Every fourth row has no valid label, and is rejected."""
    return Counter(
        (int(number % 4 == 2), b"Head %d: It is\n__label__2 number %d" % (number, number))
        for number in numbers
        if number % 4 != 3
    )


def test_every_setting_of_the_data_reaches_its_reader(tmp_path):
    # `sample` names the input that is read without `input_base`; `window` excludes `splits`.
    assert {"input_base", "sample", "window", *SETTINGS} == set(Data.model_fields)
    inputs = tmp_path / "day-3"
    inputs.mkdir()
    (tmp_path / "day-4").mkdir()
    files = {"train": range(100), "test": range(100, 120), "other": range(120, 140)}
    for name, numbers in files.items():
        with (inputs / f"{name}.txt").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["given", "head", "said", "rating", "title", "text"])
            for n in numbers:
                said = f"It is\n__label__2 number {n}"
                out.writerow([LABELS[n % 4], f"Head {n}", said, 5, "another title", "another text"])
    overrides = [f"paths.root={tmp_path / 'runs'}", f"data.input_base={tmp_path}/day-{{SPAN}}"]
    overrides += [f"data.{name}={value}" for name, value in SETTINGS.items()]
    config = load_config(overrides=overrides, environ={})
    components = {item.id: item for item in create_pipeline(config, Local(config)).components}
    assert components["StatisticsGen"].exec_properties["max_examples"] == 7
    read = Read(tmp_path, components["ReviewExampleGen"].exec_properties)
    # 30 of 120 lines are exactly the fraction that `max_rejected_fraction` allows.
    assert read.counts["rejected/bad_label"] == 30
    assert read.content("test") == expected(files["test"])
    train, eval_ = read.content("train"), read.content("eval")
    assert train.total() == 5
    assert eval_.total() > 20  # 8 of the 75 without `split_fractions`
    assert train + eval_ <= expected(files["train"])
    assert train.total() + eval_.total() == 75 - read.counts["over_max_examples"]


def test_a_pipeline_of_the_sample_reads_no_other_folder(tmp_path):
    config = load_config(overrides=[f"paths.root={tmp_path / 'runs'}"], environ={})
    components = {item.id: item for item in create_pipeline(config, Local(config)).components}
    # The UI of a cluster can replace any parameter of a compiled pipeline.
    given = {**components["ReviewExampleGen"].exec_properties, "input_base": str(tmp_path)}
    with pytest.raises(InputError, match=r"^parameter input_base: the pipeline was compiled with"):
        Read(tmp_path, given)


def test_the_window_reaches_the_reader(tmp_path):
    for day, numbers in {1: range(40), 2: range(40, 80), 3: range(80, 120)}.items():
        lines = [f"__label__{1 + n % 2} number {n}\n" for n in numbers]
        (tmp_path / f"day-{day}.txt").write_text("".join(lines))
    overrides = [f"paths.root={tmp_path / 'runs'}", f"data.input_base={tmp_path}/day-{{SPAN}}.txt"]
    config = load_config(overrides=[*overrides, "data.window=2"], environ={})
    components = {item.id: item for item in create_pipeline(config, Local(config)).components}
    read = Read(tmp_path, components["ReviewExampleGen"].exec_properties)
    assert set(read.texts("test")) == {b"number %d" % n for n in range(80, 120)}
    assert read.counts["examples/train"] + read.counts["examples/eval"] == 40
    assert len(list((tmp_path / "runs/spans/amazon_reviews/ReviewExampleGen").iterdir())) == 2
