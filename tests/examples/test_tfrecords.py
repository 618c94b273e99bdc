"""Files of TFRecords: the damaged one is named, and the pure functions change no global state."""

import gzip

import pytest
import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops

from core.errors import InputError
from examples.tfrecords import read_sample, report_damaged_file, without_autotune
from tests import examples


def test_the_damaged_file_is_named(tmp_path):
    good, bad = str(tmp_path / "good.gz"), str(tmp_path / "bad.gz")
    examples.write(good, [b"a"])
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"no record" * 9))
    with pytest.raises(InputError, match=f"^{bad} is damaged"), report_damaged_file([good, bad]):
        list(tf.data.TFRecordDataset([good, bad], "GZIP"))
    with pytest.raises(tf.errors.DataLossError), report_damaged_file([good]):
        list(tf.data.TFRecordDataset(bad, "GZIP"))


def test_a_sample_comes_from_some_files_of_the_whole_split(tmp_path):
    for number in range(10):
        examples.write(str(tmp_path / f"{number}.gz"), [b"%d-%d" % (number, n) for n in range(20)])
    whole = read_sample(str(tmp_path), 1000)
    assert len(whole) == 200 and len(read_sample(str(tmp_path), 1000, 10)) == 200
    assert {one[:1] for one in read_sample(str(tmp_path), 1000, 4)} == {b"0", b"3", b"6", b"9"}
    # Which Examples of a file are in the sample does not depend on the other files.
    few = read_sample(str(tmp_path), 5, 4)
    assert few == [one for one in whole if one[:1] in b"0369"][:5]


def test_a_dataset_without_autotuning_leaves_tensorflow_as_it_is():
    before = multi_device_iterator_ops._create_device_dataset
    tuned = tf.data.Dataset.range(3)
    assert not without_autotune(tuned).options().autotune.enabled
    assert tuned.options().autotune.enabled is None
    assert multi_device_iterator_ops._create_device_dataset is before
