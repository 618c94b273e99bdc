"""Files of TFRecords: the damaged one is named, and the pure functions change no global state."""

import gzip

import pytest
import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops

from core.errors import InputError
from examples.tfrecords import read_first, report_damaged_file, without_autotune
from tests import examples


def test_the_damaged_file_is_named(tmp_path):
    good, bad = str(tmp_path / "good.gz"), str(tmp_path / "bad.gz")
    examples.write(good, [b"a"])
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"no record" * 9))
    with pytest.raises(InputError, match=f"^{bad} is damaged"), report_damaged_file([good, bad]):
        list(tf.data.TFRecordDataset([good, bad], "GZIP"))
    with pytest.raises(tf.errors.DataLossError), report_damaged_file([good]):
        list(tf.data.TFRecordDataset(bad, "GZIP"))


def test_the_first_examples_come_from_every_file(tmp_path):
    examples.write(str(tmp_path / "a.gz"), [b"a%d" % n for n in range(9)])
    examples.write(str(tmp_path / "b.gz"), [b"b0"])
    examples.write(str(tmp_path / "c.gz"), [b"c0", b"c1", b"c2"])
    assert read_first(str(tmp_path), 5) == [b"a0", b"a1", b"b0", b"c0", b"c1"]
    assert len(read_first(str(tmp_path), 1000)) == 13
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"no record" * 9))
    with pytest.raises(InputError, match=rf"^{tmp_path}/c.gz is damaged"):
        read_first(str(tmp_path), 1)


def test_a_dataset_without_autotuning_leaves_tensorflow_as_it_is():
    before = multi_device_iterator_ops._create_device_dataset
    tuned = tf.data.Dataset.range(3)
    assert not without_autotune(tuned).options().autotune.enabled
    assert tuned.options().autotune.enabled is None
    assert multi_device_iterator_ops._create_device_dataset is before
