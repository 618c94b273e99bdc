"""Run a compiled pipeline by kfp.local: each step is the command of its container, in a process.

usage: run_locally.py PIPELINE.yaml PIPELINE_ROOT [NAME=VALUE ...]
"""

import json
import sys

from kfp import components, local
from kfp.local import subprocess_task_handler


def main(package, root, *parameters):
    # kfp's runner of processes allows only Lightweight Python Components, but can run any command.
    handler = subprocess_task_handler.SubprocessTaskHandler
    handler.validate_not_container_component = lambda self, command: None
    local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=root)
    pipeline = components.load_component_from_file(package)
    values = dict(parameter.split("=", 1) for parameter in parameters)
    pipeline(**{name: json.loads(text) for name, text in values.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
