"""The main function of a local run: load the settings, check the input, run, report the result.

`local_runner.py` calls it for the TFX command line. `amazon-reviews run` runs this module in a
child process with the option PREPARED. The child receives the settings that its parent has checked.
"""

from __future__ import annotations

import argparse
import os
import sys

from absl import logging

from core import exit_codes, processes
from core.code_file import located_cause
from core.errors import UserError, cause, disk_is_full
from core.events import Phase, RunOutcome
from core.metadata import named_errors
from core.overrides import OPTION
from pipeline.config import PipelineConfig, load_config, load_recorded_settings
from platforms.checks import check_engine
from platforms.local.events import RunSender
from platforms.local.folders import PREPARED, prepare
from platforms.local.preflight import check_run


def main() -> int:
    """Run the pipeline; return the exit code.

    Returns:
      0 if the run finished, even without a blessed model, as in TFX. After a UserError its exit
      code; its message is on standard error.

    Raises:
      SystemExit: an argument of the command line is wrong.
      Exception: an error that a user cannot correct.
    """
    parser = argparse.ArgumentParser(description="Run the pipeline on this machine.")
    parser.add_argument("--config", metavar="FILE", help="settings [default: $PIPELINE_CONFIG]")
    parser.add_argument(OPTION, metavar="KEY=VALUE", action="append", default=[])
    parser.add_argument(
        PREPARED,
        action="store_true",
        help="read the settings from standard input as `recorded_settings`, after `prepare`",
    )
    arguments = parser.parse_args()
    processes.set_environment()
    # By default TensorFlow reserves all memory of the GPUs, which the processes of a training use.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    logging.set_verbosity(logging.INFO)
    sender = RunSender.attach()
    logging.get_absl_logger().addHandler(sender)
    try:
        reads_only = check_engine("local")
        sender.send(Phase("checking settings and input"))
        if arguments.prepared:
            config = load_recorded_settings(sys.stdin.read())
        else:
            config = load_config(arguments.config, arguments.set)
            prepare(config, locks=not reads_only)
        check_run(config)
        with named_errors(config.paths.metadata):
            _run(config, sender)
    except UserError as error:
        wrong_input = error.exit_code == exit_codes.BAD_INPUT
        sender.fail(str(error), sender.component, wrong_input=wrong_input)
        where = f"{sender.component}: " if sender.component else ""
        print(f"{where}{error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        sender.fail(_problem(error), sender.component)
        raise
    return exit_codes.PUSHED


def _problem(error: Exception) -> str:
    """Return the line about an error that ended a run, with the remedy for a full disk."""
    line = located_cause(error)
    # The error of a checkpoint has the remedy already.
    if disk_is_full(error) and "free space" not in line:
        line += "; the disk is full: free space on it and run again"
    return line


def _run(config: PipelineConfig, sender: RunSender) -> None:
    sender.send(Phase("loading TFX"))
    # The import of TensorFlow and TFX takes seconds, so it comes after the check of the settings.
    with processes.large_imports():
        from pipeline.pipeline import create_pipeline
        from platforms.local.platform import Local
        from platforms.local.run import Runner

    platform = Local(config)
    runner = Runner(config, platform.input_fingerprint)
    try:
        runner.run(create_pipeline(config, platform))
    except Exception as error:
        where = f"{sender.component}: " if sender.component else ""
        try:
            runner.record_failure(where + _problem(error))
        except Exception as other:  # the error of the run must be the one that is shown
            logging.warning("The failure could not be recorded: %s", cause(other))
        raise
    if runner.run_id is None:
        return
    sender.send(Phase("reading the result"))
    outcome = runner.outcome().to_json()
    sender.send(RunOutcome(outcome))
    logging.info("Outcome: %s", outcome)


if __name__ == "__main__":
    sys.exit(main())
