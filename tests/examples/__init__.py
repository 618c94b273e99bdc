"""Serialized Examples, and files of them as components write them."""

import numpy as np
import tensorflow as tf


def example(**columns):
    """Return an Example with these columns: each is a text, bytes, or integers."""
    feature = {}
    for name, value in columns.items():
        if isinstance(value, str | bytes):
            data = value.encode() if isinstance(value, str) else value
            feature[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
        else:
            feature[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=np.ravel(value)))
    made = tf.train.Example(features=tf.train.Features(feature=feature))
    # The order of the features in the bytes is random otherwise.
    return made.SerializeToString(deterministic=True)


def write(path, examples):
    """Write Examples to a file."""
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for each in examples:
            writer.write(each)
