"""A patch of TensorFlow: the iterators of a strategy's devices are not tuned.

A strategy creates one more iterator for each device of a process. Its dataset has none of the
options of the dataset that a caller distributes, and TensorFlow creates it by a private function
without a parameter for options (2.16 and 2.21). So the end of such an iterator would wait for its
tuning thread, see `examples.tfrecords.without_autotune`.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops

from examples.tfrecords import without_autotune

_create_device_dataset = multi_device_iterator_ops._create_device_dataset


def patch_device_iterators() -> None:
    """Let TensorFlow create the iterators of devices without autotuning, from now on.

    The patch applies to all strategies of this process. A second call changes nothing.
    """
    multi_device_iterator_ops._create_device_dataset = _untuned_device_dataset


def _untuned_device_dataset(*arguments: Any) -> tf.data.Dataset:
    return without_autotune(_create_device_dataset(*arguments))
