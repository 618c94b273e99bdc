"""Executor of DataGate: reads the anomalies of every split, and fails if there are any."""

from __future__ import annotations

import json
import os
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx import types
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs

from core.errors import InputError

CHECKED_KEY = "checked"
_ANOMALIES_FILE = "SchemaDiff.pb"


class Executor(base_executor.BaseExecutor):
    """Accepts Examples that fit the schema, and raises an error for any others."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor.

        Raises:
          InputError: a split has anomalies; the message names split, feature and reason of each.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        anomalies = artifact_utils.get_single_instance(
            input_dict[standard_component_specs.ANOMALIES_KEY]
        )
        splits = artifact_utils.decode_split_names(anomalies.split_names)
        found = [problem for split in splits for problem in _problems(anomalies, split)]
        if found:
            raise InputError("the data does not fit the schema: " + "; ".join(found))
        checked = artifact_utils.get_single_instance(output_dict[CHECKED_KEY])
        fileio.makedirs(checked.uri)
        with fileio.open(os.path.join(checked.uri, "checked.json"), "w") as file:
            file.write(json.dumps({"splits": splits, "anomalies": 0}))


def _problems(anomalies: types.Artifact, split: str) -> list[str]:
    folder = artifact_utils.get_split_uri([anomalies], split)
    with fileio.open(os.path.join(folder, _ANOMALIES_FILE), "rb") as file:
        report = anomalies_pb2.Anomalies.FromString(file.read())
    problems = [
        f"{split}: {feature}: {info.short_description}: {info.description}"
        for feature, info in sorted(report.anomaly_info.items())
    ]
    if report.HasField("dataset_anomaly_info"):
        problems.append(f"{split}: {report.dataset_anomaly_info.description}")
    if report.data_missing:
        problems.append(f"{split}: contains no Examples")
    return problems
