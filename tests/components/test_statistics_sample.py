"""The sample of the statistics: an unbiased part of every file, and always the same one."""

import json
from pathlib import Path

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from components import statistics_gen, tfrecords
from tests.components.test_sorted_input import make_statistics, write_shards

pytestmark = pytest.mark.slow

SIZES = (2000, 1200, 800)


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """Examples in files of many batches each, sorted by label in each file."""
    monkeypatch.setattr(statistics_gen, "_BATCH", 100)
    monkeypatch.setattr(tfrecords, "_BEGINNING", 4 << 10)
    return write_shards(tmp_path, *([0] * (size // 2) + [1] * (size // 2) for size in SIZES))


def rate_and_statistics(examples, folder, max_examples):
    """Return the recorded rate, and the statistics of the train split."""
    statistics = make_statistics(examples, folder, max_examples)
    rates = json.loads(statistics.get_json_value_custom_property("sample_rate_by_split"))
    (file,) = Path(statistics.uri, "Split-train").iterdir()
    found = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes())
    return rates["train"], found.datasets[0]


def sample(examples, folder, max_examples):
    """Return the recorded rate, and for each file the positions of the sampled Examples."""
    rate, dataset = rate_and_statistics(examples, folder, max_examples)
    (text,) = [feature for feature in dataset.features if feature.path.step[0] == "text"]
    places = [set() for _ in SIZES]
    for bucket in text.string_stats.rank_histogram.buckets:
        number, place = map(int, bucket.label.split())
        places[number].add(place)
    assert dataset.num_examples == sum(map(len, places))
    return rate, places


def test_the_sample_has_examples_from_every_part_of_every_file(examples, tmp_path):
    rate, places = sample(examples, tmp_path, 800)
    # 800 of 4,000: the number of Examples is estimated by the size of the files.
    assert 0.18 < rate < 0.22
    for size, chosen in zip(SIZES, places, strict=True):
        assert 0.7 * rate < len(chosen) / size < 1.3 * rate
        for tenth in range(10):
            part = range(tenth * size // 10, (tenth + 1) * size // 10)
            assert 0.3 * rate < len(chosen.intersection(part)) / len(part) < 2 * rate
    # Each batch of each file has other random numbers. Equal ones would bias the sample of an input
    # that changes periodically.
    batches = [{place % 100 for place in places[0] if place // 100 == n} for n in range(20)]
    heads = [{place for place in chosen if place < 100} for chosen in places]
    assert all(one != other for one in batches for other in batches if one is not other)
    assert heads[0] != heads[1] != heads[2] != heads[0]


def test_the_sample_is_the_same_each_time(examples, tmp_path):
    first, again = (sample(examples, tmp_path / name, 300) for name in ("first", "again"))
    assert first == again
    _, more = sample(examples, tmp_path / "more", 600)
    assert sum(map(len, more)) > 1.5 * sum(map(len, first[1]))
