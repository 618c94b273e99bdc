"""The anomalies that ExampleValidator found in a split."""

from __future__ import annotations

import os

from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.dsl.io import fileio

_FILE = "SchemaDiff.pb"


def read_anomalies(uri: str, split: str) -> list[str]:
    """Return a line for each anomaly of a split, with its feature and the reason.

    Args:
      uri: the output `anomalies` of ExampleValidator, which must contain the split.
      split: name of the split.
    """
    with fileio.open(os.path.join(uri, f"Split-{split}", _FILE), "rb") as file:
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
