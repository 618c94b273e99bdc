"""DataGate: fails the run if there are anomalies, which TFX's ExampleValidator only records.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
"""

import json
import os
from collections.abc import Iterable

from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import ExampleAnomalies, Examples, ExampleStatistics
from tfx.utils import io_utils

from components.artifacts import CheckedData
from components.evaluator.thresholds import check_names
from components.line_counts import (
    TWO_CLASSES_REMEDY,
    class_problem,
    present_classes,
    repetition_problem,
)
from core.errors import InputError, write_again
from preprocessing import features
from preprocessing.labels import Labels, read_labels


@component
def DataGate(
    anomalies: InputArtifact[ExampleAnomalies],
    statistics: InputArtifact[ExampleStatistics],
    examples: InputArtifact[Examples],
    checked: OutputArtifact[CheckedData],
    named_classes: Parameter[str] = "{}",
) -> None:
    """Check that the data has no anomalies, and record it in `checked`.

    The names of classes in the settings are also checked, because the classes may be known only
    since the files were read.

    Make every component that must not read bad data depend on this one, with `add_upstream_node`.

    Args:
      anomalies: the output of an ExampleValidator.
      statistics: the statistics that the ExampleValidator has read.
      examples: the Examples, which contain the names of the classes.
      checked: the names of the splits.
      named_classes: setting -> the names of classes in it, as JSON.

    Raises:
      InputError: a split has anomalies or only one class, a setting names a class that does not
        exist, the anomalies name no split, or a file was deleted. The message contains the features
        and the reasons.
      OSError, tensorflow.errors.OpError: a file cannot be read or written.
    """
    splits = artifact_utils.decode_split_names(anomalies.split_names)
    if not splits:
        raise InputError(f"{anomalies.uri} names no split, so the data cannot be checked")
    labels = read_labels(examples.uri)
    for setting, names in json.loads(named_classes).items():
        check_names(setting, names, labels.names)
    found: list[str] = []
    lacks_classes = False
    for split in splits:
        found += read_anomalies(anomalies.uri, split)
        counts = class_counts(statistics.uri, split, labels)
        found += filter(None, [class_problem(split, counts, labels.noun)])
        lacks_classes = lacks_classes or len(present_classes(counts)) < 2
    if found:
        if repetition := _repetition(statistics.uri, splits):
            found.append(repetition)
        elif lacks_classes:
            found.append(f"each split requires {labels.nouns} of two classes: {TWO_CLASSES_REMEDY}")
        raise InputError("the data does not fit the schema: " + "; ".join(found))
    record = json.dumps({"splits": splits, "anomalies": 0})
    io_utils.write_string_file(os.path.join(checked.uri, "checked.json"), record)


def class_counts(uri: str, split: str, labels: Labels) -> dict[str, float]:
    """Return the number of Examples of each class in the sample that StatisticsGen read.

    Args:
      uri: URI of the output `statistics` of StatisticsGen.
      split: the name of the split.
      labels: the classes.

    Returns:
      Name of a class -> number of its Examples; 0 for a class without any.

    Raises:
      InputError: the statistics were deleted.
      google.protobuf.message.DecodeError: the statistics are damaged.
      OSError, tensorflow.errors.OpError: the statistics cannot be read.
    """
    counts = {
        bucket.label: bucket.sample_count
        for dataset in _read_statistics(uri, split).datasets
        for feature in dataset.features
        if features.LABEL in feature.path.step
        for bucket in feature.string_stats.rank_histogram.buckets
    }
    # An anomaly names any other label.
    return {name: counts.get(str(label), 0.0) for label, name in enumerate(labels.names)}


def _repetition(uri: str, splits: Iterable[str]) -> str | None:
    """Return the problem of texts that are repeated in the samples of StatisticsGen, or None.

    Args:
      uri: see `class_counts`.
      splits: the names of all splits.
    """
    examples = texts = 0
    for split in splits:
        for dataset in _read_statistics(uri, split).datasets:
            examples += dataset.num_examples
            for feature in dataset.features:
                if features.TEXT in feature.path.step:
                    texts += feature.string_stats.unique
    return repetition_problem(examples, texts)


def _read_statistics(uri: str, split: str) -> statistics_pb2.DatasetFeatureStatisticsList:
    path = os.path.join(uri, f"Split-{split}", "FeatureStats.pb")
    return statistics_pb2.DatasetFeatureStatisticsList.FromString(_read(path))


def read_anomalies(uri: str, split: str) -> list[str]:
    """Return a line for each anomaly of a split.

    Args:
      uri: URI of the output `anomalies` of ExampleValidator.
      split: the name of the split.

    Raises:
      InputError: the anomalies were deleted.
      google.protobuf.message.DecodeError: the anomalies are damaged.
      OSError, tensorflow.errors.OpError: the anomalies cannot be read.
    """
    path = os.path.join(uri, f"Split-{split}", "SchemaDiff.pb")
    report = anomalies_pb2.Anomalies.FromString(_read(path))
    found = [
        f"{split}: {feature}: {info.short_description}: {info.description}"
        for feature, info in sorted(report.anomaly_info.items())
    ]
    if report.HasField("dataset_anomaly_info"):
        found.append(f"{split}: {report.dataset_anomaly_info.description}")
    if report.data_missing:
        found.append(f"{split}: contains no Examples")
    return found


def _read(path: str) -> bytes:
    if not fileio.exists(path):
        raise InputError(f"{path} was deleted, although ML Metadata lists it; {write_again('it')}")
    with fileio.open(path, "rb") as file:
        content: bytes = file.read()
    return content
