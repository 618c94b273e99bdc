"""Pass results from Beam workers to the executor through a file.

The workers may be other processes or machines.
"""

from __future__ import annotations

import json
import os
from typing import Any

import apache_beam as beam
from tfx.dsl.io import fileio

_FILE = "done.json"


def write_results(pipeline: beam.Pipeline, results: beam.PCollection, folder: str) -> None:
    """Write the elements of `results`, sorted, to a JSON file in `folder`."""
    _ = (
        pipeline
        | "DoneFile" >> beam.Create([os.path.join(folder, _FILE)])
        | "WriteDone" >> beam.Map(_write, beam.pvalue.AsList(results))
    )


def read_results(folder: str) -> list[Any]:
    """Return the elements that `write_results` wrote; JSON turns tuples into lists."""
    with fileio.open(os.path.join(folder, _FILE)) as file:
        results: list[Any] = json.loads(file.read())
    return results


def _write(path: str, results: list[Any]) -> None:
    with fileio.open(path, "w") as file:
        file.write(json.dumps(sorted(results)))
