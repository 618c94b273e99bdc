"""A training from the command line, as TFJob, Vertex AI and the local cluster start it.

`python -m trainer_module.task JOB [--set training.epochs=1 ...]`. With TF_CONFIG this process takes
its place in that cluster; without, it starts the processes that the settings ask for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from absl import logging
from pydantic import ValidationError

from core.overrides import OPTION, apply_overrides
from core.settings import first_problem
from trainer_module.distribute import child, first_process, local_cluster, lost_peer
from trainer_module.distribute.cluster import Cluster
from trainer_module.settings import TrainingJob

_ERROR = re.compile(r"\w+(Error|Exception): ")
_STACK = re.compile(r'in user code:|Graph execution error:|Detected at |File "')
_OURS = ("trainer_module", "preprocessing", "core", "__main__")
"""Where errors for people come from; the last is what this module is called when it runs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains; returns the exit code.

    0: trained; 2: a setting is wrong; `lost_peer.EXIT_CODE`: another process of the cluster is
    gone, and a restart of all of them continues from the last checkpoint; 143: SIGTERM came; 1:
    any other failure.

    A failure whose message says everything is one line on stderr, any other one is a traceback.
    """
    first_process.end_at_sigterm()
    parent = child.attach()
    logging.set_verbosity(logging.INFO)
    asked = _parser().parse_args(arguments)
    cluster = None
    try:
        cluster = Cluster.from_environ(os.environ)
        job = read_job(asked.job, asked.set)
        if cluster is None and local_cluster.has_peers(job.training):
            local_cluster.run(job)
        else:
            # TensorFlow takes seconds to import; what is wrong above is told before that.
            from trainer_module.training import train

            train(job)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception as error:
        if lost_peer.is_lost_peer(error, cluster):
            logging.warning("The training ends here", exc_info=True)
            line = f"another process of the cluster is gone: {_in_short(error)}"
            print(
                f"{line}; started again, this one continues from the last checkpoint",
                file=sys.stderr,
            )
            parent.fail(line)
            return lost_peer.EXIT_CODE
        if not is_told_by_us(error):
            logging.exception("The training failed")
            parent.fail(_in_short(error))
            return 1
        line = " ".join(str(error).split())
        print(line, file=sys.stderr)
        parent.fail(line)
        return local_cluster.BAD_SETTINGS if isinstance(error, ValueError) else 1
    return 0


def read_job(path: str, overrides: Sequence[str] = ()) -> TrainingJob:
    """The job in a JSON file, local or gs://, with overrides such as `training.epochs=1`.

    Raises:
      ValueError: in one line, what is wrong with the file, a key or a value.
    """
    try:
        values = json.loads(_read(path))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: holds a {type(values).__name__}, a training job is a mapping")
    apply_overrides(values, overrides)
    try:
        return TrainingJob.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"{path}: {first_problem(error, TrainingJob)}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer_module.task",
        description="Trains a model, in the cluster that TF_CONFIG names if it names one.",
    )
    parser.add_argument("job", metavar="JOB", help="JSON file of the training, local or gs://")
    parser.add_argument(
        OPTION,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a key of the job, such as training.epochs=1; may be repeated",
    )
    return parser


def _read(path: str) -> str:
    if "://" in path:
        import tensorflow as tf

        try:
            with tf.io.gfile.GFile(path) as file:
                text: str = file.read()
                return text
        except tf.errors.OpError as error:
            raise OSError(str(error)) from None
    return Path(path).read_text(encoding="utf-8")


def _in_short(error: Exception) -> str:
    """Type and message in one line, out of the stack that TensorFlow puts into its messages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    if errors:
        return errors[-1]
    told = [line for line in lines if not _STACK.match(line)]
    return f"{type(error).__name__}: {told[0]}" if told else type(error).__name__


def is_told_by_us(error: Exception) -> bool:
    """Return whether our own code raised `error`, and its message alone says what is wrong.

    A ValueError that comes out of a library may be about anything; its traceback is needed.
    """
    if type(error).__module__.split(".")[0] in _OURS:
        return True
    frame, _ = list(traceback.walk_tb(error.__traceback__))[-1]
    return isinstance(error, ValueError) and frame.f_globals["__name__"].split(".")[0] in _OURS


if __name__ == "__main__":
    # The log has its times and places from the first line on.
    logging.use_absl_handler()
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # All is written by now. TensorFlow's own way out may crash, or wait for processes of the
    # cluster that have ended.
    os._exit(code)
