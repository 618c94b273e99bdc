"""A convolution that accepts an empty batch."""

from __future__ import annotations

import tensorflow as tf
import tf_keras


class Convolution(tf_keras.layers.Conv1D):
    """Keras's Conv1D, also for a batch without reviews.

    A replica without Examples for the last step of an epoch gets an empty batch. For such a batch
    the convolution of oneDNN returns a tensor with the channels of its input (TensorFlow 2.16 on an
    AMD EPYC; with `TF_ENABLE_ONEDNN_OPTS=0` the channels are right). So one row is added to an
    empty batch, and removed from the result.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        rows = inputs.shape[0]
        if rows is None:
            rows = tf.shape(inputs)[0]
            filled = tf.cond(tf.equal(rows, 0), lambda: _with_a_row(inputs), lambda: inputs)
            filled.set_shape(inputs.shape)
        else:
            filled = inputs if rows else _with_a_row(inputs)
        return super().call(filled)[:rows]


def _with_a_row(inputs: tf.Tensor) -> tf.Tensor:
    return tf.pad(inputs, [[0, 1], [0, 0], [0, 0]])
