"""The entry point of local runs, for `tfx pipeline create --engine local --pipeline_path`.

It reads the settings from $PIPELINE_CONFIG and $PIPELINE_SET. `amazon-reviews run` also runs this
module, in a process of its own.
"""

from __future__ import annotations

import os
import sys

# TFX starts this file by its path, so this folder is first on sys.path and `import pipeline` would
# find the module pipeline.py in it instead of the package.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [
    os.path.dirname(_HERE),
    *(entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE),
]

from platforms.local.main import main

if __name__ == "__main__":
    sys.exit(main())
