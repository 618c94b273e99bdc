"""The runner for `tfx pipeline create --engine local --pipeline_path local_runner.py`.

The settings come from $PIPELINE_CONFIG and $PIPELINE_SET. `amazon-reviews run` calls the same
function in a child process.
"""

import sys

from platforms.local.main import main

if __name__ == "__main__":
    sys.exit(main())
