"""Executor of DataGate: reads the anomalies of every split, and fails if there are any."""

from __future__ import annotations

import json
import os
from typing import Any

from tfx import types
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs

from components.anomalies import read_anomalies
from core.errors import InputError

CHECKED_KEY = "checked"


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
            Or the anomalies name no split.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        anomalies = artifact_utils.get_single_instance(
            input_dict[standard_component_specs.ANOMALIES_KEY]
        )
        splits = artifact_utils.decode_split_names(anomalies.split_names)
        if not splits:
            raise InputError(
                f"{anomalies.uri} names no split, so the data cannot be checked; delete this "
                "folder and run again"
            )
        found = [line for split in splits for line in read_anomalies(anomalies.uri, split)]
        if found:
            raise InputError("the data does not fit the schema: " + "; ".join(found))
        checked = artifact_utils.get_single_instance(output_dict[CHECKED_KEY])
        fileio.makedirs(checked.uri)
        with fileio.open(os.path.join(checked.uri, "checked.json"), "w") as file:
            file.write(json.dumps({"splits": splits, "anomalies": 0}))
