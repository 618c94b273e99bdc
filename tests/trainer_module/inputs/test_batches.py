"""Batches of similar length: every record once, in the narrowest possible batch."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing import features
from preprocessing.settings import Transform
from tests.examples import example
from trainer_module.inputs import batches as module
from trainer_module.inputs.batches import BatchSpec, length_batches, length_boundaries

MAX_TOKENS = 40
TRANSFORM = Transform(max_tokens=MAX_TOKENS)
NAMES = (features.TOKENS, features.NGRAMS)


def dataset(lengths):
    """Return records numbered from 1.

    The number is each of the `length` tokens and the label; the n-grams are number and length.
    """
    serialized = [
        example(tokens=[number] * length, ngrams=[number, length], label=[number])
        for number, length in enumerate(lengths, 1)
    ]
    return tf.data.Dataset.from_tensor_slices(tf.constant(serialized, tf.string))


def batches_of(lengths, batch_size, group=1, window=1000, shuffle=False, seed=0):
    batching = BatchSpec(NAMES, TRANSFORM, batch_size, group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MIN_BATCHES", window)
        patch.setattr(module, "_WINDOW_EXAMPLES", 0)
        made = length_batches(dataset(lengths), batching, shuffle=shuffle, seed=seed)
    batches = []
    for inputs, labels in made:
        ngrams = inputs[features.NGRAMS].to_tensor(shape=[None, 2]).numpy()
        assert ngrams.tolist() == [[n, lengths[int(n) - 1]] for n in labels.numpy().ravel()]
        batches.append((inputs[features.TOKENS].numpy(), labels.numpy()))
    return batches


def order_of(batches):
    return [labels.ravel().astype(int).tolist() for _, labels in batches]


@pytest.mark.slow
@settings(max_examples=15)
@given(
    lengths=st.lists(st.integers(0, MAX_TOKENS), max_size=60),
    batch_size=st.integers(1, 9),
    window=st.integers(1, 16),
    group=st.integers(1, 3),
    shuffle=st.booleans(),
)
def test_every_example_once_in_the_narrowest_width(lengths, batch_size, window, group, shuffle):
    batches = batches_of(lengths, batch_size, window=window, group=group, shuffle=shuffle, seed=5)
    assert len(batches) == math.ceil(len(lengths) / batch_size)
    assert all(len(labels) == batch_size for _, labels in batches[:-1])
    numbers = [number for batch in order_of(batches) for number in batch]
    assert sorted(numbers) == list(range(1, len(lengths) + 1))
    widths = length_boundaries(MAX_TOKENS)
    for tokens, labels in batches:
        assert tokens.dtype == np.int64 and labels.dtype == np.float32
        assert labels.shape == (len(tokens), 1)
        for row, number in zip(tokens, labels.ravel().astype(int), strict=True):
            length = lengths[number - 1]
            assert row.tolist() == [number] * length + [0] * (len(row) - length)
        longest = max(lengths[int(number) - 1] for number in labels.ravel())
        assert tokens.shape[1] == min(width for width in widths if width >= longest)


def test_a_review_longer_than_max_tokens_is_cut():
    assert length_boundaries(500)[-3:] == [480, 496, 500]
    assert length_boundaries(32) == [16, 32]
    assert length_boundaries(5) == [5]
    [(tokens, _)] = batches_of([MAX_TOKENS + 9, 1], 2)
    assert tokens.tolist() == [[2] + [0] * (MAX_TOKENS - 1), [1] * MAX_TOKENS]


def test_processes_with_one_seed_see_the_same_widths_at_the_same_step():
    lengths = np.random.default_rng(0).integers(0, MAX_TOKENS + 1, 400)
    mine, theirs = (
        batches_of(np.random.default_rng(seed).permutation(lengths), 10, shuffle=True, seed=3)
        for seed in (1, 2)
    )
    widths = [[tokens.shape[1] for tokens, _ in batches] for batches in (mine, theirs)]
    assert widths[0] == widths[1]
    assert sorted(widths[0]) != widths[0], "not shuffled at all"
    assert order_of(mine) != order_of(theirs)


def test_batches_of_a_group_are_neighbours_in_length():
    lengths = np.random.default_rng(0).permutation(np.repeat(np.arange(1, 41), 8))
    batches = batches_of(lengths, 8, shuffle=True, seed=1, group=4)
    groups = np.array([tokens.shape[1] for tokens, _ in batches]).reshape(-1, 4)
    steps = np.diff(groups, axis=1)
    assert (steps >= 0).all() and (steps.sum(axis=1) <= 16).all()
    assert sorted(groups[:, 0]) != groups[:, 0].tolist(), "not shuffled at all"
