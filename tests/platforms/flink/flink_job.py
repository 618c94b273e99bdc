"""A Beam pipeline on Flink, run as a process of its own: `flink_job.py KIND FOLDER ARGUMENTS...`.

It prints the class and the message of the error with which the pipeline ends, or `done`. After
SIGUSR1 it writes the stacks of its threads to `FOLDER/stacks`.
"""

import faulthandler
import os
import signal
import sys
import time
from pathlib import Path

import apache_beam as beam

from core.errors import InputError
from core.local_beam import make_pipeline


class Work(beam.DoFn):
    """What a kind of job does with each element."""

    def __init__(self, kind, folder):
        self._kind, self._folder = kind, folder

    def process(self, element):
        if self._kind == "bad input":
            raise InputError("reviews.csv: line 3: 9 stars, between 1 and 5 are allowed")
        working = Path(self._folder, "working")
        if self._kind == "endless" or (self._kind == "endless once" and not working.exists()):
            working.touch()
            time.sleep(600)
        yield element, 1


def main(kind, folder, *arguments):
    """Return the exit code."""
    try:
        with make_pipeline(arguments) as pipeline:
            _ = (
                pipeline
                | beam.Create(["a", "b", "a"])
                | beam.ParDo(Work(kind, folder))
                | beam.CombinePerKey(sum)
                | beam.Map(lambda pair: Path(folder, pair[0]).write_text(str(pair[1])))
            )
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return 1
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    with Path(sys.argv[2], "stacks").open("w") as stacks:
        faulthandler.register(signal.SIGUSR1, stacks)
        # As in `platforms.entrypoint`: threads of Beam's client may outlive the job.
        os._exit(main(*sys.argv[1:]))
