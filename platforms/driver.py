"""The driver of ReviewExampleGen on Vertex AI, which runs it before the cache look-up.

`python -m platforms.driver` is TFX's driver for file-based ExampleGens, with our fingerprint of the
input. It takes the same arguments.
"""

from __future__ import annotations

import runpy
import sys

from tfx.components.example_gen import input_processor

from components.review_example_gen.component import InputProcessor
from core.errors import UserError

_TFX_MODULE = "tfx.orchestration.kubeflow.v2.file_based_example_gen.driver"


def main() -> int:
    """Run TFX's driver; return the exit code."""
    # TFX's driver constructs the class of this name and has no argument for another class.
    input_processor.FileBasedInputProcessor = InputProcessor
    try:
        runpy.run_module(_TFX_MODULE, run_name="__main__", alter_sys=True)
    except UserError as error:
        print(f"ReviewExampleGen: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
