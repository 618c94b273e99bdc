"""JSON documents with records for each of several splits."""

import json

import pytest
import yaml

from pipeline.data_convert.json_documents import find_splits, may_be_document, read_records
from tests.pipeline.test_data_check import look, write
from tests.pipeline.test_data_convert import look_again

TOPICS = ["billing", "delivery", "login"]


def rows(word, count, labels=TOPICS):
    # The rows are sorted by their labels, as published sets are.
    found = [[f"i {word} about case {n}", labels[n % len(labels)]] for n in range(count)]
    return sorted(found, key=lambda row: row[1])


def objects(word, count):
    return [{"utterance": text, "intent": label} for text, label in rows(word, count)]


CLINC = {
    "oos_val": rows("hum", 20, ["oos"]),
    "val": rows("wonder", 30),
    "train": rows("ask", 90),
    "oos_test": rows("sing", 25, ["oos"]),
    "test": rows("write", 60),
    "oos_train": rows("dance", 20, ["oos"]),
}
DOCUMENTS = {
    "rows, as in CLINC150": (CLINC, {"train": 110, "eval": 50, "test": 85}),
    "objects": (
        {"train": objects("ask", 90), "dev": objects("wonder", 30)},
        {"train": 80, "eval": 30},
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 4])
def test_the_splits_of_a_document_become_files(tmp_path, name, indent):
    document, lines = DOCUMENTS[name]
    check = look(
        write(tmp_path, data__json=json.dumps(document, indent=indent)), "data.labels=each"
    )
    assert check.is_settled and check.is_complete
    expected = {label for part in document.values() for label in _labels(part)}
    assert {label.name for label in check.labels} == expected
    for split in set(lines) - {"train"}:
        assert check.splits[split] == lines[split]
    again = look_again(tmp_path, check)
    assert again.starts and again.counts == check.counts
    names = {path.stem for path in (tmp_path / "in-utf8").rglob("*.jsonl")}
    assert names == set(document)
    assert set(yaml.safe_load(check.settings)["data"]["splits"]) == set(lines)


def _labels(part):
    return {row["intent"] if isinstance(row, dict) else row[1] for row in part}


def test_the_glob_of_a_split_that_is_a_document_matches_its_parts(tmp_path):
    files = {"a__json": json.dumps(DOCUMENTS["objects"][0]), "b__json": json.dumps(objects("x", 9))}
    check = look(
        write(tmp_path, **files), "data.splits={train: a.json, test: b.json}", "data.labels=each"
    )
    assert yaml.safe_load(check.settings)["data"]["splits"] == {
        "train": "a.json/**",
        "test": "b.json",
    }
    assert look_again(tmp_path, check).starts


@pytest.mark.parametrize(
    "document",
    [
        {"page1": objects("ask", 9), "page2": objects("write", 9)},
        {"train": objects("ask", 9), "info": {"version": 1}},
        {"data": rows("ask", 9)},
    ],
    ids=["pages", "one split", "rows"],
)
def test_other_documents_have_no_splits(document):
    content = json.dumps(document).encode()
    assert may_be_document(content, is_all=True)
    assert read_records(content, is_all=True)
    assert find_splits(content) == {}
