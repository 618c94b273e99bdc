"""DataGate: fails the run if there are anomalies, which TFX's ExampleValidator only records.

`@component` reads the annotations, which `from __future__ import annotations` would make strings.
"""

import json
import os

from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import ExampleAnomalies, ExampleStatistics

from components.artifacts import CheckedData
from core.errors import InputError
from preprocessing import features


@component
def DataGate(
    anomalies: InputArtifact[ExampleAnomalies],
    statistics: InputArtifact[ExampleStatistics],
    checked: OutputArtifact[CheckedData],
) -> None:
    """`anomalies` -> `checked`, or a failed run whose error names the feature and the reason.

    A component that must not read bad data depends on this one by `add_upstream_node`.

    Args:
      anomalies: the output of an ExampleValidator.
      statistics: its input.
      checked: the names of the splits.

    Raises:
      InputError: a split has anomalies or only one class, or the anomalies name no split.
    """
    splits = artifact_utils.decode_split_names(anomalies.split_names)
    if not splits:
        raise InputError(
            f"{anomalies.uri} names no split, so the data cannot be checked; delete this folder "
            "and run again"
        )
    found = []
    for split in splits:
        found += read_anomalies(anomalies.uri, split)
        classes = [name for name, count in class_counts(statistics.uri, split).items() if count]
        if len(classes) == 1:
            found.append(f"{split}: every review is {classes[0]}")
    if found:
        raise InputError("the data does not fit the schema: " + "; ".join(found))
    fileio.makedirs(checked.uri)
    with fileio.open(os.path.join(checked.uri, "checked.json"), "w") as file:
        file.write(json.dumps({"splits": splits, "anomalies": 0}))


def class_counts(uri: str, split: str) -> dict[str, float]:
    """Return class -> its number in the output `statistics` of StatisticsGen; 0 without any."""
    counts = dict.fromkeys(features.CLASSES, 0.0)
    path = os.path.join(uri, f"Split-{split}", "FeatureStats.pb")
    if not fileio.exists(path):
        return counts
    with fileio.open(path, "rb") as file:
        message = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read())
    labels = [
        feature
        for dataset in message.datasets
        for feature in dataset.features
        if features.LABEL in feature.path.step
    ]
    for bucket in (each for label in labels for each in label.string_stats.rank_histogram.buckets):
        # An anomaly names any other label.
        if bucket.label in ("0", "1"):
            counts[features.CLASSES[int(bucket.label)]] += bucket.sample_count
    return counts


def read_anomalies(uri: str, split: str) -> list[str]:
    """Return a line for each anomaly in the output `anomalies` of ExampleValidator."""
    with fileio.open(os.path.join(uri, f"Split-{split}", "SchemaDiff.pb"), "rb") as file:
        report = anomalies_pb2.Anomalies.FromString(file.read())
    found = [
        f"{split}: {feature}: {info.short_description}: {info.description}"
        for feature, info in sorted(report.anomaly_info.items())
    ]
    if report.HasField("dataset_anomaly_info"):
        found.append(f"{split}: {report.dataset_anomaly_info.description}")
    if report.data_missing:
        found.append(f"{split}: contains no Examples")
    return found
