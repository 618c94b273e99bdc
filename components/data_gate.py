"""DataGate: fails the run if there are anomalies, which TFX's ExampleValidator only records.

`@component` reads the annotations, which `from __future__ import annotations` would make strings.
"""

import json
import os

from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import ExampleAnomalies

from components.artifacts import CheckedData
from core.errors import InputError


@component
def DataGate(
    anomalies: InputArtifact[ExampleAnomalies], checked: OutputArtifact[CheckedData]
) -> None:
    """`anomalies` -> `checked`, or a failed run whose error names the feature and the reason.

    A component that must not read bad data depends on this one by `add_upstream_node`.

    Args:
      anomalies: the output of an ExampleValidator.
      checked: the names of the splits.

    Raises:
      InputError: a split has anomalies; the message names split, feature and reason of each. Or
        the anomalies name no split.
    """
    splits = artifact_utils.decode_split_names(anomalies.split_names)
    if not splits:
        raise InputError(
            f"{anomalies.uri} names no split, so the data cannot be checked; delete this folder "
            "and run again"
        )
    found = [line for split in splits for line in read_anomalies(anomalies.uri, split)]
    if found:
        raise InputError("the data does not fit the schema: " + "; ".join(found))
    fileio.makedirs(checked.uri)
    with fileio.open(os.path.join(checked.uri, "checked.json"), "w") as file:
        file.write(json.dumps({"splits": splits, "anomalies": 0}))


def read_anomalies(uri: str, split: str) -> list[str]:
    """Return a line for each anomaly of a split, with its feature and the reason.

    Args:
      uri: the output `anomalies` of ExampleValidator, which must contain the split.
      split: name of the split.
    """
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
