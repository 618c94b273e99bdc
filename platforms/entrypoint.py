"""The entry point of every step's container: it corrects the step's input and runs the executor.

Compiled pipelines call `python -m platforms.entrypoint --executor_class_path CLASS
--json_serialized_invocation_args INPUT --json_serialized_inputs_spec_args SPEC [Beam arguments]`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from components.properties import COMPONENT_FILE, TRACKING
from core import exit_codes
from core.code_file import CodeFile, load, located_cause
from core.errors import InputError, cause
from core.processes import large_imports
from core.storage import is_bucket
from platforms.executor_input import (
    check_root,
    correct_inputs,
    correct_outputs,
    delete_folder_markers,
    deleted_input,
    output_uris,
    write_properties,
)

_LOG = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run one step; return 0, 2 if the input or a setting is wrong, or 1 after another failure.

    Args:
      arguments: the arguments of the command line, see the docstring of the module.

    Raises:
      SystemExit: a required argument is missing.
    """
    parser = argparse.ArgumentParser(prog="python -m platforms.entrypoint", add_help=False)
    parser.add_argument("--executor_class_path", required=True)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", default="{}")
    step, beam_args = parser.parse_known_args(arguments)
    name = step.executor_class_path
    executor_input = json.loads(step.json_serialized_invocation_args)
    correct_outputs(executor_input)
    try:
        check_root(executor_input)
        _execute(step, beam_args, executor_input)
    except Exception as error:
        message, code = _cause(error)
        if deleted := deleted_input(executor_input, message):
            message, code = deleted, exit_codes.BAD_INPUT
        _track_failure(executor_input, f"{name}: {message}")
        if code == exit_codes.FAILED:
            _LOG.exception("%s failed", name)
        else:
            print(f"{name}: {message}", file=sys.stderr)
        return code
    return 0


def _execute(
    step: argparse.Namespace, beam_args: list[str], executor_input: dict[str, Any]
) -> None:
    """Run the executor of a step by the `main` of TFX, and correct its outputs."""
    with large_imports():
        from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    if TRACKING in os.environ:
        from components.run_report.mlflow_connection import check_client

        check_client()
    if COMPONENT_FILE in os.environ:
        # TFX imports the executor by the name of this module.
        load(CodeFile.model_validate_json(os.environ[COMPONENT_FILE]), [])
    correct_inputs(executor_input, json.loads(step.json_serialized_inputs_spec_args))
    step.json_serialized_invocation_args = json.dumps(executor_input)
    kubeflow_v2_run_executor.main((step, beam_args))
    write_properties(executor_input)
    delete_folder_markers(output_uris(executor_input))


def _cause(error: Exception) -> tuple[str, int]:
    """Return the cause of a failed step in one line, and the exit code."""
    if isinstance(error, ValidationError):
        line = (
            "the image contains another version of the code than the compiled pipeline; build the "
            f"image and compile again ({' '.join(str(error).split())})"
        )
        return line, exit_codes.BAD_INPUT
    return located_cause(error), getattr(error, "exit_code", exit_codes.FAILED)


def _track_failure(executor_input: Mapping[str, Any], failure: str) -> None:
    """Send the failure of the run to MLflow, if its runs are sent there.

    An error of MLflow is only a warning in the log, because it must not replace the step's failure.
    """
    try:
        _send_failure(executor_input, failure)
    except Exception as error:
        _LOG.warning("tracking.mlflow: the failure of this run was not sent: %s", cause(error))


def _send_failure(executor_input: Mapping[str, Any], failure: str) -> None:
    from components.run_report.content import collect
    from components.run_report.history import Run
    from components.run_report.tracking import from_environment, run_id_from_output, track

    sent_to = from_environment()
    if not sent_to:
        return
    uris = output_uris(executor_input)
    output_file = executor_input.get("outputs", {}).get("outputFile", "")
    # On Vertex AI this file is beside the outputs. On Kubeflow it is in a local folder of the pod,
    # whose path does not contain the id of the run.
    if is_bucket(output_file):
        uris.append(output_file)
    if not uris:
        raise InputError("the step has no output artifact, whose URI would contain the run's id")
    track(sent_to, collect(Run(sent_to.name, run_id_from_output(uris[0]), error=failure)))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # All outputs are complete here. Libraries of TFX can crash while the interpreter unloads them,
    # and Kubeflow would then report a failed step.
    os._exit(code)
