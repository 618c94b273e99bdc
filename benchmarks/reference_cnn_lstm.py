"""The reference CNN-LSTM as it was published: all in memory, 500 words a review.

    python -m benchmarks.reference_cnn_lstm TRAIN TEST [--steps N]

Keras's Tokenizer finds 20,000 words in both files outside the model, every review is padded to 500
words, and Adam trains one epoch in batches of 512. Only training is timed. With `--steps` that
many steps are timed, after one that traces the graph, and `seconds_per_epoch` is extrapolated.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import Any

import numpy as np
import tf_keras

from benchmarks.peer_files import read_reviews
from trainer_module.loop.memory import peak_rss

BATCH_SIZE = 512
WORDS = 20_000
LENGTH = 500


def build() -> tf_keras.Model:
    """A compiled model: word numbers [batch, LENGTH] -> probability of positive [batch, 1]."""
    layers = tf_keras.layers
    model = tf_keras.Sequential(
        [
            layers.Embedding(WORDS, 200),
            layers.Conv1D(64, 3, activation="relu"),
            layers.MaxPooling1D(2),
            layers.LSTM(128, recurrent_dropout=0.2),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model


def run(train_file: str, test_file: str, *, steps: int | None = None) -> dict[str, Any]:
    """Trains the model, and tests it if the epoch is a whole one.

    Args:
      train_file, test_file: in Kaggle's fastText format, plain or .bz2.
      steps: how many steps to time; None: a whole epoch. With it only the reviews of those steps
        are tokenized, and the test file is not read.

    Returns:
      examples: reviews in `train_file`.
      seconds, steps: of the training that was timed.
      seconds_per_epoch: that of a whole epoch.
      extrapolated: whether it was computed from fewer steps.
      accuracy: on `test_file`, None if extrapolated.
      peak_rss: in bytes, of what was run.

    Raises:
      ValueError: `steps` is none, or `train_file` has too few reviews for it.
    """
    if steps is not None and steps < 1:
        raise ValueError(f"steps: {steps} is not at least 1")
    labels, texts = zip(*read_reviews(train_file), strict=True)
    examples = len(texts)
    if steps is None:
        test_labels, test_texts = zip(*read_reviews(test_file), strict=True)
    else:
        # One more: the first one is not timed.
        wanted = BATCH_SIZE * (steps + 1)
        if examples < wanted:
            raise ValueError(f"{steps} steps need {wanted} reviews, {train_file} has {examples}")
        labels, texts = labels[:wanted], texts[:wanted]
        test_labels, test_texts = (), ()
    tokenizer = tf_keras.preprocessing.text.Tokenizer(num_words=WORDS)
    tokenizer.fit_on_texts(texts + test_texts)
    inputs, targets = _padded(tokenizer, texts), np.array(labels)
    model = build()
    if steps is not None:
        model.fit(inputs[:BATCH_SIZE], targets[:BATCH_SIZE], batch_size=BATCH_SIZE, verbose=0)
        inputs, targets = inputs[BATCH_SIZE:], targets[BATCH_SIZE:]
    start = time.perf_counter()
    model.fit(inputs, targets, batch_size=BATCH_SIZE, verbose=0)
    seconds = time.perf_counter() - start
    steps_of_epoch = math.ceil(examples / BATCH_SIZE)
    timed = steps if steps is not None else steps_of_epoch
    accuracy = None
    if steps is None:
        held_out = _padded(tokenizer, test_texts)
        accuracy = model.evaluate(
            held_out, np.array(test_labels), batch_size=BATCH_SIZE, verbose=0, return_dict=True
        )["accuracy"]
    return {
        "examples": examples,
        "seconds": seconds,
        "steps": timed,
        "seconds_per_epoch": seconds / timed * steps_of_epoch,
        "extrapolated": steps is not None,
        "accuracy": accuracy,
        "peak_rss": peak_rss(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("train", help="reviews to train on, fastText format")
    parser.add_argument("test", help="reviews to test on")
    parser.add_argument("--steps", type=int, help="how many steps to time [a whole epoch]")
    arguments = parser.parse_args()
    print(json.dumps(run(arguments.train, arguments.test, steps=arguments.steps)))


def _padded(tokenizer: tf_keras.preprocessing.text.Tokenizer, texts: tuple[str, ...]) -> np.ndarray:
    return tf_keras.utils.pad_sequences(tokenizer.texts_to_sequences(texts), maxlen=LENGTH)


if __name__ == "__main__":
    main()
