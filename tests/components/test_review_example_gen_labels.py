"""ReviewExampleGen with the classes of each task: their names and counts, and bad input."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from components.line_counts import SPLITS
from components.review_example_gen import component, units
from core.errors import InputError
from pipeline.label_setting import parse_labels, task_options
from preprocessing.labels import Labels, read_labels
from preprocessing.reading import pieces
from tests.components.example_gen import THREADS, label_of, read_files, text_of, write

pytestmark = pytest.mark.slow
PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
NAMES = ["card lost", "Größe, Farbe", "日本語", "IT", "it"]


@pytest.fixture
def inputs(tmp_path):
    return tmp_path / "input"


def rows(names, number=300, text="text"):
    labels = [names[index % len(names)] for index in range(number)]
    return [
        json.dumps({"label": label, "text": f"{text} {index} of {label}"}, ensure_ascii=False)
        for index, label in enumerate(labels)
    ]


def read_task(folder, inputs, labels, runner=(), patterns=None, **options):
    read = asdict(task_options(parse_labels(labels)))
    return read_files(folder, inputs, patterns, runner, read=read, **options)


def named(read):
    """Return split -> (name of the class, text) of its Examples."""
    names = read_labels(read.examples.uri).names
    return {
        split: Counter(
            (names[label_of(example)], text_of(example).decode()) for example in read.splits[split]
        )
        for split in SPLITS
    }


@pytest.mark.parametrize("runner", [THREADS, pytest.param(PROCESSES, marks=pytest.mark.exhaustive)])
def test_the_classes_of_each_do_not_depend_on_files_workers_or_cuts(
    tmp_path, inputs, monkeypatch, runner
):
    lines = [*rows(NAMES), '{"label": null, "text": "x"}', '{"label": "nan", "text": "y"}']
    write(inputs, "a.jsonl", lines)
    whole = read_task(tmp_path / "whole", inputs, "each")
    assert read_labels(whole.examples.uri) == Labels(tuple(sorted(NAMES)))
    for found in named(whole).values():
        assert all(text.endswith(f" of {name}") for name, text in found)
    assert sum(whole.counts[f"examples/{split}"] for split in SPLITS) == 300
    assert whole.counts["rejected/bad_label"] == 2
    assert whole.classes[0] == '5: "Größe, Farbe", IT, card lost, it, 日本語'
    assert "IT (60), it (60) differ only in case" in whole.classes[1]

    # The same lines in other files, in another order, in many units, by several processes.
    parts = tmp_path / "parts"
    for number in range(3):
        write(parts, f"{number}.jsonl", lines[::-1][number::3])
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 2_000)
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 6_000)
    cut = read_task(tmp_path / "cut", parts, "each", runner)
    assert (cut.classes, named(cut)) == (whole.classes, named(whole))
    assert read_labels(cut.examples.uri) == read_labels(whole.examples.uri)


def test_stars_are_ordered_classes(tmp_path, inputs):
    spelled = ["1", "2.0", "3.0 out of 5 stars", "4/5", "5"]
    write(inputs, "a.jsonl", [*rows(spelled), *rows(["unknown"], 2)])
    read = read_task(tmp_path, inputs, "stars")
    assert read_labels(read.examples.uri) == Labels(tuple("12345"), is_ordered=True)
    for found in named(read).values():
        assert all(spelled[int(name) - 1] == text.partition(" of ")[2] for name, text in found)
    assert read.counts["rejected/bad_label"] == 2 and "neutral" not in read.counts
    assert read.classes[1] == "rejected, because they are not on the scale: unknown (2)"


def test_a_mapping_joins_labels_and_counts_those_that_it_leaves_out(tmp_path, inputs):
    write(inputs, "a.txt", [f"__label__{1 + n % 5} text {n} of {1 + n % 5}" for n in range(300)])
    mapping = {1: "bad", 2: "bad", 3: None, 4: "good", 5: "so good"}
    read = read_task(tmp_path, inputs, mapping)
    assert read_labels(read.examples.uri) == Labels(("bad", "good", "so good"))
    for found in named(read).values():
        assert all(mapping[int(text[-1])] == name for name, text in found)
    assert read.counts["neutral"] == 60
    assert read.classes == ["3: bad, good, so good", "left out: 3 (60)"]
    # The same files are sentiment with these names, without a first pass.
    mapping = {1: "negative", 2: "negative", 3: None, 4: "positive", 5: "positive"}
    read = read_task(tmp_path / "sentiment", inputs, mapping)
    assert read_labels(read.examples.uri) == Labels(("negative", "positive"))
    assert (read.counts["neutral"], read.classes) == (60, [])


def test_bad_input_is_one_line_for_each_kind(tmp_path, inputs):
    folder = iter(range(100))

    def error_of(lines, patterns=None, **options):
        for name, content in lines.items():
            write(inputs, name, content)
        with pytest.raises(InputError) as error:
            read_task(tmp_path / str(next(folder)), inputs, "each", (), patterns, **options)
        for name in lines:
            Path(inputs, name).unlink()
        assert "\n" not in str(error.value)
        return str(error.value)

    rare = [*rows(["a", "b"]), *rows(["rare"], 2)]
    assert "too few lines of rare (2)" in error_of({"a.jsonl": rare})
    message = error_of({"a.jsonl": rows(["a", "b"], 4_000)}, max_examples={"train": 1, "eval": 1})
    assert "increase data.max_examples" in message
    assert "all 300 lines have a in the column 'label'" in error_of({"a.jsonl": rows(["a"])})
    assert "these are ids or texts" in error_of({"a.jsonl": rows([str(n) for n in range(300)])})
    split = {"train.jsonl": rows(["a", "b"]), "eval.jsonl": rows(["a", "c"], 40)}
    message = error_of(split, {"train": "train*", "eval": "eval*"})
    assert "no line for training has the class c (20 in the eval files)" in message
    # No label can be encoded as UTF-8.
    latin = [f'{{"label": "\\ud8{n % 10}0", "text": "t {n}"}}' for n in range(50)]
    assert "no line has a text and a label" in error_of({"a.jsonl": latin})


def test_a_class_that_a_held_out_split_lacks_is_named(tmp_path, inputs):
    write(inputs, "train.jsonl", rows(["a", "b", "c"]))
    write(inputs, "eval.jsonl", rows(["a", "b"], 20, "eval text"))
    write(inputs, "test.jsonl", rows(["a", "c"], 20, "test text"))
    patterns = {split: f"{split}*" for split in SPLITS}
    read = read_task(tmp_path, inputs, "each", (), patterns)
    assert read.classes[1:] == [
        "the eval split has no Example of c; its metrics say nothing about this class",
        "the test split has no Example of b; its metrics say nothing about this class",
    ]


def test_a_first_pass_that_was_killed_can_be_started_again(tmp_path, inputs, monkeypatch):
    write(inputs, "a.jsonl", rows(["a", "b"], 60))

    def killed(*args, **_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(component, "choose_classes", killed)
        with pytest.raises(KeyboardInterrupt):
            read_task(tmp_path, inputs, "each")
    write(inputs, "a.jsonl", rows(["c", "d"], 60))
    read = read_task(tmp_path, inputs, "each")
    assert read_labels(read.examples.uri).names == ("c", "d")
    assert not (tmp_path / "examples" / "unpublished").exists()


def test_the_examples_keep_the_scale_that_was_detected(tmp_path, inputs):
    write(inputs, "a.txt", [f"__label__{1 + n % 5} text {n} of {1 + n % 5}" for n in range(300)])
    read = read_files(tmp_path / "detected", inputs)
    assert read_labels(read.examples.uri).label_scale == "1 to 5"
    read = read_task(tmp_path / "stars", inputs, "stars")
    assert read_labels(read.examples.uri).label_scale == ""
