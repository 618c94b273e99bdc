"""A check of data has the numbers of ReviewExampleGen, because both have the same reader."""

import json

import pytest

from components.line_counts import SPLITS, LineCounts
from pipeline.config import load_config
from pipeline.data_check.check import check_data
from pipeline.inputs import example_gen_options
from tests.components.example_gen import Read
from tests.pipeline import exports

MIXED = "".join(
    json.dumps(row) + "\n"
    for n in range(300)
    for row in (
        {"overall": n % 5 + 1, "summary": f"Title {n}", "reviewText": f"body {n % 250}"},
        {"rating": n % 5 + 1, "title": f"Title {n}", "text": f"another body {n}"},
    )
)
DAYS = {
    f"day-{day}.jsonl": "".join(
        json.dumps({"rating": n % 5 + 1, "text": f"a text of number {n}"}) + "\n"
        for n in range(day * 100, day * 100 + 150)
    )
    for day in (1, 2, 3)
}
INPUTS = {
    "spans": (DAYS, ["data.window=3", "data.max_examples={test: 50}"]),
    "sentiment": (
        {"a.jsonl": MIXED + '{"overall": 9, "reviewText": "nine"}\n{"overall": 5}\n'},
        ["data.max_examples={train: 200}"],
    ),
    "splits": (
        {"train.jsonl": MIXED, "test.jsonl": MIXED[: len(MIXED) // 5]},
        ["data.labels=stars", "data.splits={train: train.jsonl, test: test.jsonl}"],
    ),
    "each": (
        {"tickets.csv": exports.support_desk().decode("cp1252")},
        ["data.labels=each", "data.columns={label: Kategorie, text: Beschreibung}"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_a_look_has_the_numbers_of_the_component(tmp_path, name):
    files, overrides = INPUTS[name]
    folder = tmp_path / "in"
    folder.mkdir()
    for file, text in files.items():
        (folder / file).write_text(text)
    base = f"{folder}/day-{{SPAN}}.jsonl" if name == "spans" else str(folder)
    config = load_config(None, [f"data.input_base={base}", *overrides], environ={})
    check = check_data(config)
    assert check.starts and check.is_complete, check.problems
    options = example_gen_options(config, "")
    properties = {"input_base": base, "span": "newest", "options": options.model_dump_json()}
    read = Read(tmp_path / "out", properties)
    assert read.reading == "\n".join(check.reading)
    assert LineCounts.from_file(read.counts).sentence() == check.counts
    assert {split: len(read.splits[split]) for split in SPLITS} == check.splits
    texts = {text.decode() for split in SPLITS for text in read.texts(split)}
    assert {one.text for one in check.examples} <= texts
