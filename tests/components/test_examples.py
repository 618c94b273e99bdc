"""The publication of Examples: each file with its count, and a file in every split."""

import json
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf
from tfx.types import standard_artifacts

from components.examples import publish
from examples.tfrecords import count_examples
from examples.writer import ID_LEVEL, ShardWriter


def test_each_published_file_has_its_own_count_and_an_empty_split_has_a_file(tmp_path):
    examples = standard_artifacts.Examples()
    examples.uri = str(tmp_path / "examples")
    shards = []
    with ThreadPoolExecutor(1) as pool:
        for count in (3, 1, 2):
            writer = ShardWriter(str(tmp_path / f"{count}.gz"), ID_LEVEL, pool)
            writer.write([b"%d" % count] * count)
            writer.close()
            shards.append((writer.path, writer.count))
    publish(examples, "data", {"train": shards, "eval": []})
    files = sorted((tmp_path / "examples").glob("Split-*/*.gz"))
    assert [file.name for file in files] == [
        "data-00000-of-00001.gz",
        *(f"data-0000{number}-of-00003.gz" for number in range(3)),
    ]
    assert [len(list(tf.data.TFRecordDataset(str(file), "GZIP"))) for file in files] == [0, 3, 1, 2]
    assert count_examples(list(map(str, files))) == [0, 3, 1, 2]
    known = json.loads((tmp_path / "examples" / "example_counts.json").read_text())
    assert sorted(known.values()) == [0, 1, 2, 3]
