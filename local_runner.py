"""The runner for `tfx pipeline create --engine local --pipeline_path local_runner.py`.

It reads the settings from $PIPELINE_CONFIG and $PIPELINE_SET. `amazon-reviews run` calls the same
main function, in a process of its own.
"""

import sys

from platforms.local.main import main

if __name__ == "__main__":
    sys.exit(main())
