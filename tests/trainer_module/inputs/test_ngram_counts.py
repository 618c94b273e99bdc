"""The counts of n-grams by class, which Transform stores and the Trainer reads."""

import numpy as np
import pytest
import tensorflow as tf

from preprocessing import features
from trainer_module.inputs.stored_counts import (
    NgramCounter,
    read_ngram_counts,
    write_ngram_counts,
)

CONFIG = {"features": [features.NGRAMS], "ngram_buckets": 4}


def counted(*reviews):
    """Return a counter of reviews, each a label and the ids of its n-grams."""
    counter = NgramCounter.of(CONFIG)
    ids = tf.ragged.constant([ids for _, ids in reviews], dtype=tf.int64, ragged_rank=1)
    labels = tf.constant([[label] for label, _ in reviews], tf.int64)
    counter.add({features.NGRAMS: ids.to_sparse(), features.LABEL: labels})
    return counter


@pytest.fixture
def artifact(tmp_path):
    """Return a folder with the counts of a split that two workers counted."""
    counted((0, [1, 1, 3]), (1, []), (1, [0])).save(str(tmp_path / "a.npy"))
    counted((1, [0, 3])).save(str(tmp_path / "b.npy"))
    parts = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    write_ngram_counts(str(tmp_path), {"Split-train": parts})
    return tmp_path


def test_the_counts_of_all_workers_and_of_all_artifacts_are_summed(artifact):
    train = f"{artifact}/Split-train/*"
    once = [[0, 2, 0, 1], [2, 0, 0, 1]]
    np.testing.assert_array_equal(read_ngram_counts([train], 4), once)
    np.testing.assert_array_equal(read_ngram_counts([train, train], 4), once)
    again = artifact / "again"
    again.mkdir()
    write_ngram_counts(str(again), {"Split-train": [str(artifact / "a.npy")]})
    both = read_ngram_counts([train, f"{again}/Split-train/*"], 4)
    np.testing.assert_array_equal(both, [[0, 4, 0, 2], [3, 0, 0, 1]])


@pytest.mark.parametrize("pattern", ["Split-eval/*", "Split-train/part-1*", "a/Split-train/*"])
def test_other_files_have_no_counts(artifact, pattern):
    assert read_ngram_counts([f"{artifact}/Split-train/*", f"{artifact}/{pattern}"], 4) is None


def test_counts_of_another_table_are_not_used(artifact):
    assert read_ngram_counts([f"{artifact}/Split-train/*"], 8) is None


def test_without_counted_splits_no_file_is_written(tmp_path):
    write_ngram_counts(str(tmp_path), {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", [{"features": [features.TOKENS]}, {"ngram_buckets": 2**30}])
def test_words_and_very_large_tables_are_not_counted(change):
    assert NgramCounter.of(CONFIG | change) is None
