"""The local entry point: what `tfx pipeline create --engine local --pipeline_path` is given.

`amazon-reviews run` starts the same file in a process of its own and watches it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from logging import LogRecord

# Started by path (as the TFX CLI does), this folder comes first on sys.path, and `pipeline` would
# be the module beside this file instead of the package that holds it.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [
    os.path.dirname(_HERE),
    *(entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE),
]

from absl import logging

from pipeline import events, exit_codes
from pipeline.config import PipelineConfig, load_config
from pipeline.locks import lock_root
from pipeline.preflight import check
from pipeline.settings_file import ConfigError
from preprocessing.errors import InputError

_LOOKED_AT = "tfx.tools.cli" in sys.modules
"""Whether `tfx pipeline create` executes this file in its own process, only to see the pipeline."""


def main() -> int:
    """Runs the pipeline of the environment's settings; returns the exit code.

    A model that was not blessed is a finished run here, as it is to TFX.
    """
    logging.set_verbosity(logging.INFO)
    # TFX logs the connection to ML Metadata, password and all.
    logging.get_absl_logger().addFilter(tells_no_password)
    sender = events.start_sending()
    try:
        sender.send(events.PHASE, doing="checking settings and input")
        config = load_config()
        # Before the lock, which creates the root, for the places are checked first.
        check(config)
        if not _LOOKED_AT:
            lock_root(config.paths.root)
        _run(config, sender)
    except (ConfigError, InputError) as error:
        sender.send(events.FAILED, component=sender.component, error=str(error), input=True)
        where = f"{sender.component}: " if sender.component else ""
        print(f"{where}{error}", file=sys.stderr)
        return exit_codes.BAD_INPUT
    except Exception as error:
        sender.send(
            events.FAILED, component=sender.component, error=first_error_line(error), input=False
        )
        raise
    return exit_codes.PUSHED


def tells_no_password(record: LogRecord) -> bool:
    """Whether a record of TFX's log is none of those that print the connection."""
    return not str(record.msg).startswith(("Using deployment config", "Using connection config"))


def first_error_line(error: BaseException) -> str:
    """What went wrong in one line; Beam wraps whole tracebacks into its messages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    line = re.sub(r"\s*\[while running .*?\]", "", line)
    return line if "Error" in line.split(":")[0] else f"{type(error).__name__}: {line}"


def _run(config: PipelineConfig, sender: events.Sender) -> None:
    sender.send(events.PHASE, doing="loading TFX")
    # Importing TensorFlow and TFX takes seconds; wrong settings have been reported before that.
    from pipeline.pipeline import create_pipeline
    from pipeline.run import Runner

    runner = Runner(config)
    runner.run(create_pipeline(config))
    if runner.run_id is None:
        return
    sender.send(events.PHASE, doing="reading the result")
    outcome = runner.outcome()
    sender.send(events.OUTCOME, **dataclasses.asdict(outcome))
    logging.info("Outcome: %s", outcome)


if __name__ == "__main__":
    sys.exit(main())
