"""The counts of Examples by file and by class, which Transform stores and the Trainer reads."""

from dataclasses import replace

import numpy as np
import pytest

from core.errors import InputError
from examples.counts import (
    LABELS,
    NGRAMS,
    ClassCounter,
    read_class_counts,
    write_class_counts,
)
from examples.tfrecords import count_examples, write_example_counts
from preprocessing import features
from preprocessing.fast.ngrams import NgramIds
from preprocessing.labels import SENTIMENT, Labels
from preprocessing.settings import Transform, TransformConfig
from tests import examples

CONFIG = TransformConfig((features.NGRAMS,), Transform(ngram_buckets=4))


def counted(*reviews, config=CONFIG, task=SENTIMENT):
    """Return a counter of reviews, each a label and the ids of its n-grams."""
    counter = ClassCounter.for_transform(config, task)
    ids = np.array([each for _, ids in reviews for each in ids], np.int64)
    row_lengths = np.array([len(ids) for _, ids in reviews], np.int64)
    counter.add(np.array([label for label, _ in reviews], np.int64), NgramIds(ids, row_lengths))
    return counter


@pytest.fixture
def artifact(tmp_path):
    """Return a folder with the counts of a split that two workers counted."""
    counted((0, [1, 1, 3]), (1, []), (1, [0])).save(str(tmp_path / "a.npz"))
    counted((1, [0, 3])).save(str(tmp_path / "b.npz"))
    parts = [str(tmp_path / name) for name in ("a.npz", "b.npz")]
    write_class_counts(str(tmp_path), {"Split-train": parts})
    return tmp_path


def test_the_counts_of_all_workers_and_of_all_artifacts_are_summed(artifact):
    train = f"{artifact}/Split-train/*"
    for patterns in ([train], [train, train]):
        ngrams = read_class_counts(patterns, NGRAMS, 2, 4)
        np.testing.assert_array_equal(ngrams, [[0, 2, 0, 1], [2, 0, 0, 1]])
        np.testing.assert_array_equal(read_class_counts(patterns, LABELS, 2), [1, 3])
    again = artifact / "again"
    again.mkdir()
    write_class_counts(str(again), {"Split-train": [str(artifact / "a.npz")]})
    both = [train, f"{again}/Split-train/*"]
    np.testing.assert_array_equal(
        read_class_counts(both, NGRAMS, 2, 4), [[0, 4, 0, 2], [3, 0, 0, 1]]
    )
    np.testing.assert_array_equal(read_class_counts(both, LABELS, 2), [2, 5])


@pytest.mark.parametrize("pattern", ["Split-eval/*", "Split-train/part-1*", "a/Split-train/*"])
def test_other_files_and_other_tables_have_no_counts(artifact, pattern):
    patterns = [f"{artifact}/Split-train/*", f"{artifact}/{pattern}"]
    assert (
        read_class_counts(patterns, NGRAMS, 2, 4) is read_class_counts(patterns, LABELS, 2) is None
    )
    assert read_class_counts(patterns[:1], NGRAMS, 2, 8) is None


@pytest.mark.parametrize(
    "config",
    [
        replace(CONFIG, features=(features.TOKENS,)),
        replace(CONFIG, transform=Transform(ngram_buckets=2**30)),
    ],
)
def test_of_words_and_of_very_large_tables_only_the_labels_are_counted(config):
    counts = counted((0, [1]), (1, [2]), (1, []), config=config).counts
    assert counts[LABELS].tolist() == [1, 2]
    assert counts[NGRAMS].size == 0


def test_each_of_many_classes_has_counts_of_its_own():
    task = Labels(tuple("abcde"))
    counts = counted((4, [1, 1]), (0, [3]), (4, []), (2, [1]), task=task).counts
    assert counts[LABELS].tolist() == [1, 0, 1, 0, 2]
    assert counts[NGRAMS].tolist() == [[0, 0, 0, 1], [0] * 4, [0, 1, 0, 0], [0] * 4, [0, 2, 0, 0]]


@pytest.mark.parametrize(("label", "task"), [(2, "ab"), (-1, "ab"), (5, "abcde"), (10**12, "abc")])
def test_a_label_of_no_class_is_named(label, task):
    last = len(task) - 1
    line = f"the label {label}, but the labels of the {len(task)} classes are 0 to {last}; run"
    with pytest.raises(InputError, match=line):
        counted((last, [1]), (label, [2]), (0, []), task=Labels(tuple(task)))


def test_the_ngrams_of_many_classes_are_counted_by_the_rows_of_the_model(monkeypatch):
    reviews = (0, [0, 3]), (2, [2]), (2, [1, 3])
    three = Labels(("a", "b", "c"))
    counts = counted(*reviews, task=three).counts[NGRAMS]
    assert counts.tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1]]
    monkeypatch.setattr("preprocessing.settings.MAX_WEIGHTS", 6)
    counts = counted(*reviews, task=three).counts[NGRAMS]
    assert counts.tolist() == [[1, 1], [0, 0], [1, 2]]


@pytest.mark.parametrize("ids", [[0, 4], [-1]])
def test_an_ngram_of_other_buckets_is_an_error(ids):
    with pytest.raises(
        InputError, match=f"n-gram {ids[-1]}, but .* are 0 to 3; run once with --set cache=false"
    ):
        counted((0, [3]), (1, ids))


@pytest.mark.parametrize("count", [255, 65_535, 2**31 + 1, 2**40])
def test_large_counts_are_exact(tmp_path, count):
    for name in ("a.npz", "b.npz"):
        counter = ClassCounter.for_transform(CONFIG, SENTIMENT)
        counter.counts[LABELS] += [count, 1]
        counter.counts[NGRAMS] += np.array([[count, 0, 0, 1], [0, 0, count, 0]])
        counter.save(str(tmp_path / name))
    write_class_counts(
        str(tmp_path), {"Split-train": [str(tmp_path / name) for name in ("a.npz", "b.npz")]}
    )
    train = [f"{tmp_path}/Split-train/*"]
    np.testing.assert_array_equal(read_class_counts(train, LABELS, 2), [2 * count, 2])
    np.testing.assert_array_equal(
        read_class_counts(train, NGRAMS, 2, 4), [[2 * count, 0, 0, 2], [0, 0, 2 * count, 0]]
    )


def test_files_without_stored_counts_are_counted(tmp_path):
    """The process was killed after the files and before their counts were written."""
    folder = tmp_path / "Split-train"
    folder.mkdir()
    for name, count in (("a.gz", 2), ("b.gz", 5)):
        examples.write(folder / name, [b"x"] * count)
    files = [str(folder / name) for name in ("a.gz", "b.gz")]
    assert count_examples(files) == [2, 5]
    write_example_counts(str(tmp_path), {"Split-train/b.gz": 5})
    assert count_examples(files) == [2, 5]
