"""Transform on a window of spans: files of older spans are transformed once."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from components.line_counts import SPLITS
from components.transformed_spans import TransformedSpans
from examples.counts import NGRAMS, read_class_counts
from tests.components.example_gen import line, read_files, records
from tests.components.test_transform import SETTINGS, transform

pytestmark = pytest.mark.slow


@pytest.fixture
def days(tmp_path):
    """Return a function that reads the window of three days up to a day."""
    for day in range(4):
        lines = [line(n, 1 + n % 2) for n in range(100 * day, 100 * day + 60)]
        (tmp_path / f"day-{day}.txt").write_text("".join(f"{text}\n" for text in lines))

    def read(name, day):
        (tmp_path / name).mkdir()
        return read_files(
            tmp_path / name, tmp_path / "day-{SPAN}.txt", {"all": "**"}, span=day, window=3
        )

    return read


def content(transformed):
    """Return split -> its Examples in their order, parsed."""
    parse = tf.train.Example.FromString
    return {split: [parse(each) for each in records(transformed, split)] for split in SPLITS[:2]}


def test_the_train_split_of_a_single_span_has_its_texts(tmp_path, days):
    found = read_files(tmp_path, tmp_path / "day-{SPAN}.txt", {"all": "**"}, span="2", window=1)
    _, output = transform(found.examples, tmp_path, ["ngrams"])
    assert output.get_int_custom_property("unseen_span") == 3


def test_a_moved_window_has_the_examples_and_counts_of_one_from_nothing(
    tmp_path, days, monkeypatch
):
    new = []
    store = TransformedSpans.store

    def counted(self, file, transformed):
        new.append(file)
        return store(self, file, transformed)

    monkeypatch.setattr(TransformedSpans, "store", counted)
    cache = str(tmp_path / "transformed")

    def run(name, day, folder=cache):
        (tmp_path / f"transform-{name}").mkdir()
        new.clear()
        _, output = transform(
            days(name, day).examples,
            tmp_path / f"transform-{name}",
            ["ngrams"],
            span_cache=folder,
        )
        return output, len(new)

    first, transformed = run("first", "2")
    assert transformed == 4
    moved, transformed = run("moved", "3")
    assert transformed == 2
    nothing, transformed = run("nothing", "3", folder="")
    assert transformed == 4
    assert content(moved) == content(nothing) != content(first)
    unseen = [each.get_int_custom_property("unseen_span") for each in (first, moved, nothing)]
    assert unseen == [2, 3, 3]
    for split in SPLITS[:2]:
        names = [
            sorted(path.name for path in Path(each.uri, f"Split-{split}").iterdir())
            for each in (moved, nothing)
        ]
        assert names[0] == names[1] and len(names[0]) == 2
    counts = [
        read_class_counts([f"{each.uri}/Split-train/*"], NGRAMS, 2, SETTINGS["ngram_buckets"])
        for each in (first, moved, nothing)
    ]
    assert counts[1].sum() > 0 and not np.array_equal(counts[0], counts[1])
    np.testing.assert_array_equal(counts[1], counts[2])
    same = [Path(each.uri, "content.sha256").read_text() for each in (moved, nothing)]
    assert same[0] == same[1]
    # Those of the day that left the window are removed.
    spans = {int(path.name.split("-")[0]) for path in Path(cache).iterdir()}
    assert spans == {1, 2}
