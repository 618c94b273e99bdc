"""Shards of TFRecords: every record once and in order."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import tensorflow as tf

from examples import writer as writer_module
from examples.writer import ID_LEVEL, ShardWriter, text_level


class UnevenPool(ThreadPoolExecutor):
    """A pool in which every other task begins late."""

    def __init__(self):
        super().__init__(4)
        self._submitted = 0

    def submit(self, task):
        self._submitted += 1
        late = self._submitted % 2
        return super().submit(lambda: (time.sleep(0.01 * late), task()))


def records(file):
    return [record.numpy() for record in tf.data.TFRecordDataset(str(file), "GZIP")]


@pytest.mark.parametrize("level", [text_level("gs://bucket/0.gz"), ID_LEVEL])
def test_a_shard_of_many_buffers_has_every_record_once_and_in_order(tmp_path, monkeypatch, level):
    monkeypatch.setattr(writer_module, "_BUFFER", 100)
    # Some records are larger than a buffer, and a header's length needs more than a byte.
    written = [b"%05d" % n + b"x" * (n * 7 % 300) for n in range(200)]
    with UnevenPool() as pool:
        writer = ShardWriter(str(tmp_path / "0.gz"), level, pool)
        for start in range(0, 200, 5):
            writer.write(written[start : start + 5])
        writer.close()
    assert records(tmp_path / "0.gz") == written
    assert writer.count == 200


def test_a_record_of_many_megabytes_is_written(tmp_path):
    written = [b"x" * (5 << 20), b"", b"y" * 70_000]
    with ThreadPoolExecutor(1) as pool:
        writer = ShardWriter(str(tmp_path / "0.gz"), text_level("gs://bucket/0.gz"), pool)
        writer.write(written)
        writer.close()
    assert records(tmp_path / "0.gz") == written


def test_the_failure_of_a_buffer_is_raised():
    """Every write to /dev/full fails, as on a full disk."""
    with ThreadPoolExecutor(1) as pool:
        writer = ShardWriter("/dev/full", ID_LEVEL, pool)
        writer.write([b"x" * (2 << 20)])
        with pytest.raises(tf.errors.OpError):
            writer.close()
