"""From TFRecords to batches: shards of processes, batches of similar length, stored counts."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops

_create_device_dataset = multi_device_iterator_ops._create_device_dataset


def without_autotune(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return the dataset without autotuning, also for the iterators of a strategy's devices.

    tf.data tunes each iterator in a thread, with a period that doubles up to 60 s. The end of an
    iterator waits for this thread. It wakes the thread before it records the cancellation
    (`CancellationManager::StartCancelWithStatus` runs the callbacks first), so the thread may find
    nothing to do and sleep for the rest of its period (TensorFlow 2.16 and 2.21). Trainings waited
    for up to 99 s after their last step.

    tf.data.AUTOTUNE then means one parallel call for each CPU core, and a buffer of prefetched
    elements that grows on demand.
    """
    # A strategy creates one more iterator for each device, by a private function without a
    # parameter for its options.
    multi_device_iterator_ops._create_device_dataset = _untuned_device_dataset
    return _untuned(dataset)


def _untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def _untuned_device_dataset(*arguments: Any) -> tf.data.Dataset:
    return _untuned(_create_device_dataset(*arguments))
