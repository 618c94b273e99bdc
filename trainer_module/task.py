"""The command line of a training, which Kubernetes, Vertex AI and the local cluster run.

The command is `python -m trainer_module.task JOB`. With TF_CONFIG this process is a task of that
cluster. Without TF_CONFIG it starts a local cluster if the settings require one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from absl import logging
from pydantic import ValidationError

from core import events, exit_codes, storage
from core.code_file import located_cause
from core.errors import cause
from core.settings import first_problem
from trainer_module.cluster import exits, local
from trainer_module.cluster.tf_config import Cluster, set_tf_config
from trainer_module.settings import TrainingJob


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, and return the exit code.

    Args:
      arguments: the arguments of the command line; None: those of this process.

    Returns:
      0: trained; 2: a setting is wrong; `exits.LOST_PEER`: another process of the cluster is gone,
      and a restart of all processes continues from the last checkpoint; 143: ended by SIGTERM; 1:
      any other failure.
    """
    parent = events.Sender.attach()
    logging.set_verbosity(logging.INFO)
    parser = argparse.ArgumentParser(
        prog="python -m trainer_module.task",
        description="Trains a model; if TF_CONFIG is set, as a task of that cluster.",
    )
    parser.add_argument("job", metavar="JOB", help="JSON file of the training, local or gs://")
    options = parser.parse_args(arguments)
    cluster = None
    try:
        set_tf_config(os.environ)
        cluster = Cluster.from_environ(os.environ)
        job = read_job(options.job)
        if cluster is None and job.training.has_peers:
            local.run(job)
        else:
            # TensorFlow takes seconds to import, so the checks above come first.
            from trainer_module.training import train

            train(job, cluster)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception as error:
        if exits.is_lost_peer(error, cluster):
            logging.warning("Another process of the cluster is gone", exc_info=True)
            line = f"another process of the cluster is gone: {cause(error)}"
            print(f"{line}; a restart continues from the last checkpoint", file=sys.stderr)
            parent.fail(line)
            return exits.LOST_PEER
        if not exits.is_self_explanatory(error):
            logging.exception("The training failed")
            parent.fail(located_cause(error))
            return 1
        line = " ".join(str(error).split())
        print(line, file=sys.stderr)
        parent.fail(line)
        return exit_codes.BAD_INPUT if isinstance(error, ValueError) else 1
    return 0


def read_job(path: str) -> TrainingJob:
    """Read a job from a JSON file.

    Args:
      path: the path, local or gs://.

    Raises:
      ValueError: the file cannot be read, or does not contain a job.
    """
    try:
        return TrainingJob.model_validate_json(storage.read(path))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None
    except ValidationError as error:
        raise ValueError(f"{path}: {first_problem(error, TrainingJob)}") from None


if __name__ == "__main__":
    exits.end_at_sigterm()
    # From the first line on, the log has times and source lines.
    logging.use_absl_handler()
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # All output is written. The regular exit of TensorFlow may crash, or block until processes of
    # the cluster respond that have already ended.
    os._exit(code)
