"""What Beam's workers did, told to the executor: they may be other processes or machines, so it
comes back through a file."""

from __future__ import annotations

import json
import os
from typing import Any

import apache_beam as beam
from tfx.dsl.io import fileio

_FILE = "done.json"


def hand_over(pipeline: beam.Pipeline, done: beam.PCollection, folder: str) -> None:
    """Leaves the elements of `done`, sorted, in `folder` for `handed_over`; JSON must hold them."""
    _ = (
        pipeline
        | "DoneFile" >> beam.Create([os.path.join(folder, _FILE)])
        | "WriteDone" >> beam.Map(_write, beam.pvalue.AsList(done))
    )


def handed_over(folder: str) -> list[Any]:
    """What `hand_over` left, once the pipeline has run; tuples are lists now."""
    with fileio.open(os.path.join(folder, _FILE)) as file:
        done: list[Any] = json.loads(file.read())
    return done


def _write(path: str, done: list[Any]) -> None:
    with fileio.open(path, "w") as file:
        file.write(json.dumps(sorted(done)))
