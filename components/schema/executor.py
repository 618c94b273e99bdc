"""Executor of ReviewSchemaGen: copies the package's schema into the artifact."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from absl import logging
from tfx import types
from tfx.components.schema_gen.executor import DEFAULT_FILE_NAME
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs

import preprocessing

FINGERPRINT_KEY = "fingerprint"
_FILE = Path(preprocessing.__file__).parent / "schema" / "schema.pbtxt"


class Executor(base_executor.BaseExecutor):
    """Writes the schema of this installation."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor."""
        self._log_startup(input_dict, output_dict, exec_properties)
        if exec_properties[FINGERPRINT_KEY] != fingerprint():
            # The image is older or newer than the checkout that compiled the pipeline.
            logging.warning("The schema in this image differs from that of the compiled pipeline")
        folder = artifact_utils.get_single_uri(output_dict[standard_component_specs.SCHEMA_KEY])
        fileio.makedirs(folder)
        with fileio.open(os.path.join(folder, DEFAULT_FILE_NAME), "wb") as file:
            file.write(_FILE.read_bytes())


def fingerprint() -> str:
    """Return a hash of the schema file."""
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()[:16]
