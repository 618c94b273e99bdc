"""Files with a text on each line, whose labels are the lines of a file beside them."""

import json

import pytest
import yaml

from tests.pipeline.test_data_check import look
from tests.pipeline.test_data_convert import look_again

TOPICS = ["billing", "delivery", "login"]


def texts(count, word="ask", blank=None):
    lines = [
        "" if n == blank else f"i {word} about {TOPICS[n % 3]}, case {n}" for n in range(count)
    ]
    return "".join(f"{line}\n" for line in lines)


def labels(count, names=TOPICS):
    return "".join(f"{names[n % len(names)]}\n" for n in range(count))


def write_all(folder, files):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, newline="")
    return folder


def parts(count, name_of_texts, name_of_labels, word="ask"):
    return {name_of_texts: texts(count, word), name_of_labels: labels(count)}


SETS = {
    "tags of the words, as in ATIS": (
        {
            **parts(90, "train/seq.in", "train/label"),
            **parts(30, "test/seq.in", "test/label", "wonder"),
            "train/seq.out": "O O O B-topic O O\n" * 90,
            "test/seq.out": "O O O B-topic O O\n" * 30,
        },
        {"train": "train/texts.jsonl", "test": "test/texts.jsonl"},
    ),
    "the names of the classes, as in TweetEval": (
        {
            **parts(90, "train_text.txt", "train_labels.txt"),
            **parts(30, "val_text.txt", "val_labels.txt", "wonder"),
            **parts(31, "test_text.txt", "test_labels.txt", "write"),
            "mapping.txt": "0\tbilling\n1\tdelivery\n2\tlogin\n",
        },
        {"train": "train.jsonl", "eval": "val.jsonl", "test": "test.jsonl"},
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_texts_and_labels_in_two_files_are_joined_line_by_line(tmp_path, name):
    files, splits = SETS[name]
    check = look(write_all(tmp_path / "in", files), "data.labels=each")
    assert check.is_settled and check.is_complete
    assert {label.name for label in check.labels} == set(TOPICS)
    assert yaml.safe_load(check.settings)["data"]["splits"] == splits
    again = look_again(tmp_path, check)
    assert again.starts and again.counts == check.counts
    new = tmp_path / "in-utf8" / splits["train"]
    records = [json.loads(line) for line in new.read_text().splitlines()]
    assert records[1] == {"label": "delivery", "text": "i ask about delivery, case 1"}
    assert len(records) == 90


def test_sets_of_several_folders_are_no_folders_of_texts(tmp_path):
    """Each folder has the same parts, which are not texts with the name of the folder as label."""
    files = {}
    for folder in ("cats", "dogs"):
        for split in ("train", "val", "test"):
            names = (f"{folder}/{split}_text.txt", f"{folder}/{split}_labels.txt")
            files |= parts(30, *names, f"{folder} {split}")
    check = look(write_all(tmp_path / "in", files), "data.labels=each")
    assert {label.name for label in check.labels} == set(TOPICS)
    assert check.number_of_files == 6


def test_parts_without_labels_are_no_folders_of_texts(tmp_path):
    names = ("train.txt", "valid.txt", "test.txt", "vocab.txt", "tags.txt")
    files = {f"{folder}/{name}": "word O\n" * 9 for folder in ("ner", "pos") for name in names}
    check = look(write_all(tmp_path / "in", files), "data.labels=each")
    assert check.number_of_files == 10 and not check.is_settled


def test_texts_with_the_same_names_in_each_folder_are_texts(tmp_path):
    names = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
    files = {
        f"{label}/{name}.txt": f"a {word} text about {name}\n"
        for label, word in (("fake", "false"), ("real", "true"))
        for name in names
    }
    check = look(write_all(tmp_path / "in", files), "data.labels=each")
    assert [(label.name, label.lines) for label in check.labels] == [("fake", 6), ("real", 6)]


def test_mails_with_their_digests_as_suffix_are_texts(tmp_path):
    files = {
        f"{label}/{n:05}.{n:032x}": f"From x\n\nmail {word} {n}\n"
        for label, word in (("spam", "win"), ("easy_ham", "meet"))
        for n in range(20)
    }
    check = look(write_all(tmp_path / "in", files), "data.labels=each")
    assert [(label.name, label.lines) for label in check.labels] == [("easy_ham", 20), ("spam", 20)]


def test_several_files_of_labels_are_columns_beside_the_texts(tmp_path):
    files = {
        "sents.txt": texts(90, blank=4),
        "sentiments.txt": labels(90, ["0", "2"]),
        "topics.txt": labels(90),
    }
    folder = write_all(tmp_path / "in", files)
    check = look(folder, "data.columns={label: topics}", "data.labels=each")
    again = look_again(tmp_path, check)
    assert again.starts and {label.name for label in again.labels} == set(TOPICS)
    [new] = (tmp_path / "in-utf8").iterdir()
    records = [json.loads(line) for line in new.read_text().splitlines()]
    assert records[4] == {"sentiments": "0", "topics": "delivery", "text": ""}
    assert records[5] == {"sentiments": "2", "topics": "login", "text": "i ask about login, case 5"}


@pytest.mark.parametrize(
    "files",
    [
        {"label": labels(30), "seq.in": texts(29)},
        {"label": labels(30), "notes.csv": texts(30)},
        {"classes.txt": labels(3), "texts.txt": texts(3)},
    ],
    ids=["another number of lines", "a table", "a list of classes"],
)
def test_other_files_are_not_joined(tmp_path, files):
    check = look(write_all(tmp_path / "in", files), "data.labels=each")
    assert not any("data convert" in command for one in check.problems for command in one.commands)


def test_files_of_splits_leave_out_the_others_without_a_command_that_moves_them(tmp_path):
    """As the Stanford Sentiment Treebank beside its trees."""
    words = {"train": "ask", "dev": "wonder", "test": "write"}
    files = {f"trees/{split}.txt": f"(2 ({word}))\n" * 9 for split, word in words.items()}
    for split, word in words.items():
        lines = texts(60, word).splitlines()
        files[f"sst_{split}.txt"] = "".join(
            f"__label__{n % 3} {line}\n" for n, line in enumerate(lines)
        )
    check = look(write_all(tmp_path / "in", files), "data.labels=each")
    assert check.is_settled
    assert not any(problem.commands for problem in check.problems)
    splits = yaml.safe_load(check.settings)["data"]["splits"]
    assert splits == {"train": "sst_train.txt", "eval": "sst_dev.txt", "test": "sst_test.txt"}
    assert look_again(tmp_path, check).starts


def test_lists_of_texts_require_a_record_for_each_text(tmp_path):
    """The questions of chatbots are lists beside their intents."""
    intents = [
        {"tag": topic, "patterns": [f"i ask about {topic}", "help"], "responses": ["yes"]}
        for topic in TOPICS
    ]
    content = {"intents.json": json.dumps({"intents": intents}, indent=1)}
    check = look(write_all(tmp_path / "in", content), "data.labels=each")
    message = check.problems[-1].message
    assert "`patterns`, `responses`: lists of texts, which no run reads; write a record" in message
    assert "json_normalize" not in message
