"""The rule that decides whether the golden sentences of the package apply to the train reviews."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from preprocessing import normalise

_MIN_FRACTION = 0.65
"""Minimum fraction of the words of the golden sentences that must occur in the train reviews.

Measured: at least 0.88 for 1,000 English product reviews of four sources, 0.73 for 200, 0.66 for
100; at most 0.60 for 1,000 English questions to a bank, 0.05 for German and French reviews.
"""


def why_not_applied(sentences: Iterable[str], reviews: Iterable[bytes]) -> str:
    """Return the reason why the golden sentences are not applied, in one line; empty if they are.

    A model has not learned words that its train reviews lack. So the sentences are applied only if
    enough of their distinct, normalised words occur in the reviews.

    Args:
      sentences: the golden sentences of the package, with at least one word.
      reviews: texts of the train split, in UTF-8.
    """
    known = _words(reviews)
    required = _words(sentence.encode() for sentence in sentences)
    fraction = len(required & known) / len(required)
    if fraction >= _MIN_FRACTION:
        return ""
    return (
        f"the package's English golden sentences were not applied: {fraction:.0%} of their words "
        f"occur in the train reviews, {_MIN_FRACTION:.0%} are required; signatures, evaluation, "
        "memory and latency were checked, swapped labels were not; set serving_check.golden to "
        "sentences of your data"
    )


def _words(texts: Iterable[bytes]) -> set[bytes]:
    found: tf.RaggedTensor = normalise.words(tf.constant(list(texts), tf.string))
    return set(found.flat_values.numpy())
