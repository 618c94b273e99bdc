"""The reference CNN-LSTM as published: all data in memory, 500 words per review.

    python -m benchmarks.reference_cnn_lstm TRAIN TEST [--steps N] [--seed N]

Outside the model, Keras's Tokenizer selects 20,000 words of both files. Every review is padded to
500 words, and Adam trains one epoch in batches of 512. Only the training is measured. With
`--steps` only that number of steps is measured, after one step that traces the graph, and
`seconds_per_epoch` is extrapolated.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import tf_keras

from benchmarks.peer_files import main, read_reviews
from core.machine import peak_rss

BATCH_SIZE = 512
WORDS = 20_000
LENGTH = 500


def build() -> tf_keras.Model:
    """Return a compiled model: word ids [batch, LENGTH] -> probability of positive [batch, 1]."""
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


def run(train: str, test: str, *, steps: int | None, seed: int) -> dict[str, Any]:
    """Train the model, and evaluate it after a whole epoch.

    With `steps` only the reviews of these steps are tokenized, and the test file is not read.

    Returns:
      examples: number of reviews in `train`.
      seconds, steps: seconds and steps of the measured training.
      seconds_per_epoch: seconds of a whole epoch.
      extrapolated: True if `seconds_per_epoch` is computed from fewer steps.
      accuracy: accuracy on `test`; None if extrapolated.
      peak_rss: peak memory of this process in bytes.
      size: size of the model, without the state of Adam, and of its tokenizer, in bytes.

    Raises:
      SystemExit: `train` has too few reviews for `steps`.
    """
    labels, texts = zip(*read_reviews(train), strict=True)
    examples = len(texts)
    test_labels: tuple[int, ...] = ()
    test_texts: tuple[str, ...] = ()
    if steps is None:
        test_labels, test_texts = zip(*read_reviews(test), strict=True)
    else:
        # One more step, because the first one is not measured.
        required = BATCH_SIZE * (steps + 1)
        if not BATCH_SIZE < required <= examples:
            raise SystemExit(f"{steps} steps: {train} has {examples} reviews of {required}")
        labels, texts = labels[:required], texts[:required]
    tokenizer = tf_keras.preprocessing.text.Tokenizer(num_words=WORDS)
    tokenizer.fit_on_texts(texts + test_texts)
    inputs, targets = _padded(tokenizer, texts), np.array(labels)
    tf_keras.utils.set_random_seed(seed)
    model = build()
    options: dict[str, Any] = {"batch_size": BATCH_SIZE, "verbose": 0}
    if steps is not None:
        model.fit(inputs[:BATCH_SIZE], targets[:BATCH_SIZE], **options)
        inputs, targets = inputs[BATCH_SIZE:], targets[BATCH_SIZE:]
    start = time.perf_counter()
    model.fit(inputs, targets, **options)
    seconds = time.perf_counter() - start
    accuracy = None
    if steps is None:
        evaluated = _padded(tokenizer, test_texts)
        metrics = model.evaluate(evaluated, np.array(test_labels), return_dict=True, **options)
        accuracy = metrics["accuracy"]
    steps_of_epoch = math.ceil(examples / BATCH_SIZE)
    return {
        "examples": examples,
        "seconds": seconds,
        "steps": steps or steps_of_epoch,
        "seconds_per_epoch": seconds / (steps or steps_of_epoch) * steps_of_epoch,
        "extrapolated": steps is not None,
        "accuracy": accuracy,
        "peak_rss": peak_rss(),
        "size": _size(model, tokenizer),
    }


def _size(model: tf_keras.Model, tokenizer: tf_keras.preprocessing.text.Tokenizer) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.h5"
        model.save(file, include_optimizer=False)
        return file.stat().st_size + len(tokenizer.to_json())


def _padded(tokenizer: tf_keras.preprocessing.text.Tokenizer, texts: tuple[str, ...]) -> np.ndarray:
    return tf_keras.utils.pad_sequences(tokenizer.texts_to_sequences(texts), maxlen=LENGTH)


if __name__ == "__main__":
    main(run, __doc__, steps={"type": int, "help": "number of steps to measure [a whole epoch]"})
