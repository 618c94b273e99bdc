"""Shards of TFRecords: buffers in their order, and the counts of the published files."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from components import tfrecords
from components.tfrecords import ID_LEVEL, TEXT_LEVEL, ShardWriter, publish
from trainer_module.inputs import stored


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


@pytest.mark.parametrize("level", [TEXT_LEVEL, ID_LEVEL])
def test_a_shard_of_many_buffers_has_every_record_once_and_in_order(tmp_path, monkeypatch, level):
    monkeypatch.setattr(tfrecords, "_BUFFER", 100)
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
        writer = ShardWriter(str(tmp_path / "0.gz"), TEXT_LEVEL, pool)
        writer.write(written)
        writer.close()
    assert records(tmp_path / "0.gz") == written


def test_each_published_file_has_its_own_count_and_an_empty_split_has_a_file(tmp_path):
    examples = standard_artifacts.Examples()
    examples.uri = str(tmp_path / "examples")
    shards = []
    with ThreadPoolExecutor(1) as pool:
        for count in (3, 1, 2):
            writer = ShardWriter(str(tmp_path / f"{count}.gz"), TEXT_LEVEL, pool)
            writer.write([b"%d" % count] * count)
            writer.close()
            shards.append((writer.path, writer.count))
    publish(examples, "data", {"train": shards, "eval": []})
    files = sorted((tmp_path / "examples").glob("Split-*/*.gz"))
    assert [file.name for file in files] == [
        "data-00000-of-00001.gz",
        *(f"data-0000{number}-of-00003.gz" for number in range(3)),
    ]
    assert [len(records(file)) for file in files] == [0, 3, 1, 2]
    assert stored.count_examples(list(map(str, files))) == [0, 3, 1, 2]
    # Only files with Examples have a stored count, so it is that of the file.
    known = json.loads((tmp_path / "examples" / "example_counts.json").read_text())
    assert sorted(known.values()) == [1, 2, 3]


def test_files_without_stored_counts_are_counted(tmp_path):
    """The process was killed after the files and before their counts were written."""
    folder = tmp_path / "Split-train"
    folder.mkdir()
    with ThreadPoolExecutor(1) as pool:
        for name, count in (("a.gz", 2), ("b.gz", 5)):
            writer = ShardWriter(str(folder / name), TEXT_LEVEL, pool)
            writer.write([b"x"] * count)
            writer.close()
    files = [str(folder / name) for name in ("a.gz", "b.gz")]
    assert stored.count_examples(files) == [2, 5]
    stored.write_example_counts(str(tmp_path), {"Split-train/b.gz": 5})
    assert stored.count_examples(files) == [2, 5]
