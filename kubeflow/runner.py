"""What `tfx pipeline compile --engine vertex --pipeline_path kubeflow/runner.py` is given.

The settings are those of the environment, as for the local engine. `amazon-reviews compile` does
the same for both targets.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Started by path (as the TFX CLI does), this folder comes first on sys.path, and `serving` would
# be the package in here instead of the one beside it.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [
    os.path.dirname(_HERE),
    *(entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE),
]

from core import exit_codes
from core.errors import ConfigError
from pipeline.config import load_config
from pipeline.hyperparameters import check_hyperparameters
from platforms.targets import check_target

OUTPUT = "pipeline.json"


def main() -> int:
    """Compiles for Vertex AI into `pipeline.json`; returns the exit code."""
    try:
        config = load_config()
        check_target(config, "vertex")
        check_hyperparameters(config)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return exit_codes.BAD_INPUT
    from platforms.compile import compile_pipeline

    compile_pipeline(config, "vertex", Path(OUTPUT))
    return 0


if __name__ == "__main__":
    code = main()
    # The TFX CLI runs this file in its own process, and goes on when it is done.
    if code:
        sys.exit(code)
