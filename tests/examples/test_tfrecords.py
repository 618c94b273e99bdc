"""Files of TFRecords: the damaged one is named, and the pure functions change no global state."""

import gzip
import zlib

import pytest
import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops

from core.errors import InputError
from examples.tfrecords import (
    batches,
    batches_of_files,
    example_files,
    find_files,
    numbered_batches,
    read,
    read_sample,
    report_damaged_file,
    without_autotune,
    write_example_counts,
)
from tests import examples


def test_the_damaged_file_is_named(tmp_path):
    good, bad = str(tmp_path / "good.gz"), str(tmp_path / "bad.gz")
    examples.write(good, [b"a"])
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"no record" * 9))
    with pytest.raises(InputError, match=f"^{bad} is damaged"), report_damaged_file([good, bad]):
        list(tf.data.TFRecordDataset([good, bad], "GZIP"))
    with pytest.raises(tf.errors.DataLossError), report_damaged_file([good]):
        list(tf.data.TFRecordDataset(bad, "GZIP"))


def test_an_error_with_another_cause_reads_no_file(tmp_path):
    missing = str(tmp_path / "missing.gz")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        initializer = tf.lookup.KeyValueTensorInitializer(["a"], [1])
        value = tf.lookup.StaticHashTable(initializer, -1).lookup(tf.constant("a"))
        with (
            pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"),
            report_damaged_file([missing]),
        ):
            session.run(value)


@pytest.mark.parametrize("left", [None, 0, 9], ids=["cut between records", "empty", "a header"])
def test_a_file_that_lost_examples_is_damaged(tmp_path, left):
    """TensorFlow itself reads what is left without an error."""
    file = tmp_path / "Split-train" / "a.gz"
    file.parent.mkdir()
    examples.write(file, [b"%03d" % number for number in range(300)])
    write_example_counts(str(tmp_path), {"Split-train/a.gz": 300})
    assert len(read_sample(str(file.parent), 1000)) == 300
    whole = file.read_bytes()
    if left is None:
        packed, record = zlib.compressobj(wbits=31), 12 + 3 + 4
        part = packed.compress(gzip.decompress(whole)[: 100 * record])
        file.write_bytes(part + packed.flush(zlib.Z_SYNC_FLUSH))
    else:
        file.write_bytes(whole[:left])
    assert len(list(tf.data.TFRecordDataset(str(file), "GZIP"))) == (100 if left is None else 0)
    for source in (batches, numbered_batches, batches_of_files):
        with pytest.raises(InputError, match=f"^{file} is damaged; run once with --set cache"):
            list(read(source([str(file)], 16), [str(file)]))


def test_a_file_that_was_deleted_is_named(tmp_path):
    folder = tmp_path / "Split-train"
    folder.mkdir()
    files = [folder / name for name in ("a.gz", "b.gz")]
    for file in files:
        examples.write(file, [b"x"])
    write_example_counts(str(tmp_path), {f"Split-train/{file.name}": 1 for file in files})
    assert example_files(str(folder)) == find_files(str(folder)) == list(map(str, files))
    files[0].unlink()
    assert find_files(str(folder), "b*") == [str(files[1])]
    for found in (example_files, find_files):
        with pytest.raises(InputError, match=f"^{files[0]}: the Examples were deleted"):
            found(str(folder))
    files[1].unlink()
    with pytest.raises(InputError, match=f"^{folder}: the Examples were deleted"):
        find_files(str(folder))


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
