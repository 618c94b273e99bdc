"""The runner for `tfx pipeline compile --engine vertex --pipeline_path kubeflow_v2_runner.py`.

The settings come from $PIPELINE_CONFIG and $PIPELINE_SET. `amazon-reviews compile` compiles the
same pipeline for Vertex AI and for Kubeflow.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cli.compile import compile_to
from core.errors import UserError
from pipeline.config import load_config
from platforms.checks import check_engine

OUTPUT = "pipeline.json"


def main() -> int:
    """Compile the pipeline for Vertex AI into `pipeline.json`; return the exit code.

    The message of a UserError is on standard error.
    """
    try:
        check_engine("vertex")
        compile_to(Path(OUTPUT), load_config(), "vertex")
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    code = main()
    # The TFX command line runs this file in its own process, so only a failure may exit.
    if code:
        sys.exit(code)
