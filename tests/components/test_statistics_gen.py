"""StatisticsGen's sample of each split, and DataGate, which must not pass data without a check."""

import json
from pathlib import Path

import pytest
import tensorflow_data_validation as tfdv
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.types import artifact_utils, standard_artifacts

from components import statistics_gen
from components.artifacts import CheckedData
from components.data_gate import DataGate, class_counts
from components.schema_gen import with_classes
from core.errors import InputError
from preprocessing.labels import SENTIMENT, Labels, write_labels
from tests.components.test_transform import schema
from tests.examples import example, write

pytestmark = pytest.mark.slow

ONE_CLASS = "each split requires reviews of two classes: add lines, .* with the next day$"
"""The remedy of a split with one class, a regular expression."""
SIZES = (2000, 1200, 800)


def labelled(folder, labels=SENTIMENT):
    """Return Examples that consist of the names of the classes."""
    examples = standard_artifacts.Examples()
    examples.uri = str(folder)
    write_labels(str(folder), labels)
    return examples


def write_shards(folder, *contents):
    """Write a train split with a file for each list of labels; return the Examples."""
    examples = standard_artifacts.Examples()
    examples.uri = str(folder / "examples")
    examples.split_names = artifact_utils.encode_split_names(["train"])
    split = folder / "examples" / "Split-train"
    split.mkdir(parents=True)
    for number, labels in enumerate(contents):
        path = split / f"data_tfrecord-{number:05d}-of-{len(contents):05d}.gz"
        texts = (f"{number} {place}" for place in range(len(labels)))
        write(path, map(lambda text, label: example(text=text, label=label), texts, labels))
    return examples


def make_statistics(examples, folder, max_examples, classes=2):
    """Run the component; return its output, and the statistics of the train split."""
    written = schema(folder)
    if classes > 2:
        path = folder / "schema" / "schema.pbtxt"
        path.write_text(with_classes(path.read_text(), classes))
    statistics = standard_artifacts.ExampleStatistics()
    statistics.uri = str(folder / "statistics")
    statistics_gen.StatisticsGen.test_call(
        examples=examples,
        schema=written,
        statistics=statistics,
        max_examples=max_examples,
    )
    (file,) = Path(statistics.uri, "Split-train").iterdir()
    found = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes())
    expected = tfdv.load_schema_text(str(folder / "schema" / "schema.pbtxt"))
    assert not tfdv.validate_statistics(found, expected).anomaly_info
    return statistics, found.datasets[0]


def sample(examples, folder, max_examples):
    """Return for each file the positions of the sampled Examples."""
    _, dataset = make_statistics(examples, folder, max_examples)
    (text,) = [feature for feature in dataset.features if feature.path.step[0] == "text"]
    places = [set() for _ in SIZES]
    for bucket in text.string_stats.rank_histogram.buckets:
        number, place = map(int, bucket.label.split())
        places[number].add(place)
    assert dataset.num_examples == sum(map(len, places))
    return places


def test_the_sample_has_examples_from_every_part_of_every_file(tmp_path, monkeypatch):
    # Files of many batches each, sorted by label.
    monkeypatch.setattr(statistics_gen, "_BATCH", 100)
    examples = write_shards(
        tmp_path, *([0] * (size // 2) + [1] * (size // 2) for size in SIZES), []
    )
    places = sample(examples, tmp_path / "first", 800)
    for size, chosen in zip(SIZES, places, strict=True):
        assert 0.14 < len(chosen) / size < 0.26
        for tenth in range(10):
            part = range(tenth * size // 10, (tenth + 1) * size // 10)
            assert 0.06 < len(chosen.intersection(part)) / len(part) < 0.4
    # Each batch of each file has other random numbers. Equal ones would bias the sample of an input
    # that changes periodically.
    batches = [{place % 100 for place in places[0] if place // 100 == n} for n in range(20)]
    heads = [{place for place in chosen if place < 100} for chosen in places]
    assert all(one != other for one in batches for other in batches if one is not other)
    assert heads[0] != heads[1] != heads[2] != heads[0]
    assert sample(examples, tmp_path / "again", 800) == places


@pytest.mark.parametrize("max_examples", [0, 1, 10_000])
def test_all_examples_are_read_if_they_are_few_or_the_sample_lacks_a_class(tmp_path, max_examples):
    examples = write_shards(tmp_path, [0] * 3000 + [1], [0] * 3000)
    statistics, dataset = make_statistics(examples, tmp_path, max_examples)
    assert class_counts(statistics.uri, "train", SENTIMENT) == {"negative": 6000, "positive": 1}
    assert dataset.num_examples == 6001
    assert {feature.path.step[0] for feature in dataset.features} == {"text", "label"}


def test_each_of_many_classes_is_counted(tmp_path):
    labels = Labels(tuple(f"class {number}" for number in range(1_500)))
    examples = write_shards(tmp_path, range(1_500), [7] * 20)
    statistics, _ = make_statistics(examples, tmp_path, 0, classes=1_500)
    expected = {name: 21 if name == "class 7" else 1 for name in labels.names}
    assert class_counts(statistics.uri, "train", labels) == expected


@pytest.mark.parametrize("lost", ["statistics", "anomalies"])
def test_data_whose_check_was_deleted_does_not_pass(tmp_path, lost):
    anomalies, checked = standard_artifacts.ExampleAnomalies(), CheckedData()
    statistics = standard_artifacts.ExampleStatistics()
    anomalies.split_names = '["train"]'
    for artifact, name in ((anomalies, "anomalies"), (statistics, "statistics")):
        artifact.uri = str(tmp_path / name)
    if lost == "statistics":
        (tmp_path / "anomalies" / "Split-train").mkdir(parents=True)
        (tmp_path / "anomalies" / "Split-train" / "SchemaDiff.pb").touch()
    checked.uri = str(tmp_path / "checked")
    with pytest.raises(InputError, match=f"{tmp_path}/{lost}/Split-train/.* was deleted"):
        DataGate.test_call(
            anomalies=anomalies, statistics=statistics, examples=labelled(tmp_path), checked=checked
        )
    assert not (tmp_path / "checked").exists()


def test_anomalies_of_no_split_are_an_error(tmp_path):
    anomalies, checked = standard_artifacts.ExampleAnomalies(), CheckedData()
    anomalies.uri, checked.uri = str(tmp_path / "anomalies"), str(tmp_path / "checked")
    with pytest.raises(InputError, match=f"{anomalies.uri} names no split"):
        DataGate.test_call(
            anomalies=anomalies,
            statistics=standard_artifacts.ExampleStatistics(),
            examples=labelled(tmp_path),
            checked=checked,
        )
    assert not (tmp_path / "checked").exists()


def gate(folder, counts, named="{}", labels=SENTIMENT, different=None):
    """Run DataGate on splits without anomalies.

    Args:
      folder: an empty folder.
      counts: split -> its numbers of Examples of each class.
      named: see DataGate.
      labels: the classes.
      different: split -> its number of different texts; None: no text repeats another one.
    """
    anomalies, statistics = (
        standard_artifacts.ExampleAnomalies(),
        standard_artifacts.ExampleStatistics(),
    )
    checked = CheckedData()
    for name, artifact in (("a", anomalies), ("s", statistics), ("c", checked)):
        artifact.uri = str(folder / name)
    anomalies.split_names = artifact_utils.encode_split_names(list(counts))
    for split, numbers in counts.items():
        found = statistics_pb2.DatasetFeatureStatisticsList()
        dataset = found.datasets.add(num_examples=sum(numbers))
        text = dataset.features.add()
        text.path.step.append("text")
        text.string_stats.unique = different[split] if different else sum(numbers)
        feature = dataset.features.add()
        feature.path.step.append("label")
        for label, number in enumerate(numbers):
            buckets = feature.string_stats.rank_histogram.buckets
            buckets.add(label=str(label), sample_count=number)
        for place, file, content in (
            ("s", "FeatureStats.pb", found),
            ("a", "SchemaDiff.pb", anomalies_pb2.Anomalies(data_missing=not sum(numbers))),
        ):
            (folder / place / f"Split-{split}").mkdir(parents=True)
            path = folder / place / f"Split-{split}" / file
            path.write_bytes(content.SerializeToString())
    DataGate.test_call(
        anomalies=anomalies,
        statistics=statistics,
        examples=labelled(folder, labels),
        checked=checked,
        named_classes=named,
    )


def test_a_class_of_the_settings_that_does_not_exist_is_an_error(tmp_path):
    """Before the training: the classes may be known only since the files were read."""
    counts = {"train": (90, 10), "eval": (9, 1), "test": (1, 9)}
    named = {"evaluation.min_class_recall": ["postive"]}
    problem = r"evaluation.min_class_recall: no class is called 'postive', did you mean positive\?"
    with pytest.raises(InputError, match=f"^{problem}$"):
        gate(tmp_path / "wrong", counts, json.dumps(named))
    named["evaluation.min_class_recall"] = ["positive"]
    gate(tmp_path / "right", counts, json.dumps(named))


@pytest.mark.parametrize("split", ["train", "eval", "test"])
@pytest.mark.parametrize(("numbers", "only"), [((9, 0), "negative"), ((0, 9), "positive")])
def test_a_single_class_in_one_split_only_is_an_error(tmp_path, split, numbers, only):
    counts = {"train": (90, 10), "eval": (9, 1), "test": (1, 9), split: numbers}
    with pytest.raises(InputError, match=f"schema: {split}: every review is {only}; {ONE_CLASS}"):
        gate(tmp_path / "one", counts)
    gate(tmp_path / "both", {**counts, split: (1, 70_000)})


def test_a_few_texts_that_are_repeated_are_the_reason_of_empty_splits(tmp_path):
    counts = {"train": (150, 150), "eval": (0, 0), "test": (0, 0)}
    with pytest.raises(InputError) as error:
        gate(tmp_path / "one", counts, different={"train": 1, "eval": 0, "test": 0})
    assert str(error.value) == (
        "the data does not fit the schema: eval: contains no Examples; test: contains no Examples; "
        "of 300 texts only 1 is different, and equal texts belong to one split; add other texts, "
        "or set data.columns.text to the column of the texts"
    )
    with pytest.raises(InputError, match="of 300 texts only 7 are different"):
        gate(tmp_path / "few", counts, different={"train": 7, "eval": 0, "test": 0})
    with pytest.raises(InputError, match=f"test: contains no Examples; {ONE_CLASS}"):
        gate(tmp_path / "other", counts)
    # A repeated text among others is not the reason.
    small = {"train": (30, 30), "eval": (4, 0), "test": (2, 3)}
    with pytest.raises(InputError, match=f"eval: every review is negative; {ONE_CLASS}"):
        gate(tmp_path / "small", small, different={"train": 58, "eval": 4, "test": 5})


def test_a_single_class_of_tickets_is_named_without_the_word_review(tmp_path):
    with pytest.raises(InputError, match="every text is refund; each split requires texts of"):
        gate(tmp_path, {"train": (3, 4, 5), "eval": (0, 9, 0)}, labels=Labels(("a", "refund", "z")))
