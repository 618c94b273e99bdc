"""The scoring of files: `amazon-reviews predict --input`, its checks and the progress it shows."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from core import progress
from core.errors import InputError
from core.files import check_replaced, output_path, refuse_to_replace
from core.storage import is_url

if TYPE_CHECKING:
    from rich.status import Status

    from pipeline.config import PipelineConfig

_SECONDS_BETWEEN_LINES = 10.0
_FILES_SHOWN = 5


class ShownProgress(logging.Handler):
    """A context that shows the number of scored reviews, and the scored fraction of the input.

    A terminal shows one line, which changes. Any other output has a line every few seconds.
    """

    # Not rich.progress: in a file or a pipe it prints a single line, when everything is done.

    def __init__(self, status: Status, noun: str):
        """Create the context.

        Args:
          status: the line of a terminal, which the context starts and stops.
          noun: the word for a text, see `Labels.noun`.
        """
        super().__init__(logging.INFO)
        self._status = status
        self._noun = noun
        self._done: dict[str, dict[str, int]] = {progress.REVIEWS: {}, progress.BYTES: {}}
        self._bytes = 0
        self._last = time.monotonic()

    def __enter__(self) -> None:
        progress.LOGGER.addHandler(self)
        self._status.start()

    def __exit__(self, *_: object) -> None:
        progress.LOGGER.removeHandler(self)
        self._status.stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Update the shown progress with an event."""
        event = progress.decode(record)
        unit = event.unit
        if unit not in self._done:
            return  # Flink also reports its tasks.
        if unit == progress.BYTES:
            self._bytes = event.total or self._bytes
        self._done[unit][event.source] = event.done
        reviews, size = (sum(done.values()) for done in self._done.values())
        # The sizes of units are estimates.
        line = f"{reviews:,} {self._noun}s, {min(size / max(self._bytes, 1), 1):.0%}"
        self._status.update(line)
        # The bytes of a batch follow its reviews.
        is_line = unit == progress.BYTES and not self._status.console.is_terminal
        now = time.monotonic()
        if is_line and now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            self._status.console.print(line)


def score(
    inputs: Sequence[str],
    output: str | None,
    id: str | None,
    all_probabilities: bool,
    config: PipelineConfig,
) -> bool:
    """Score the reviews of files and print the counts; return whether every line was scored.

    Args:
      inputs: files, folders and globs.
      output: the value of --output.
      id: a column of the input that the output repeats.
      all_probabilities: whether the output contains the probabilities of all classes.
      config: the settings, which determine the model and the runner of Beam.

    Raises:
      InputError: an argument, a file or the model cannot be used.
      ConfigError: a setting does not fit the runner, or `paths.serving` cannot be read.
      UserError: the Beam pipeline failed.
      OSError: the output cannot be written.
      Interrupted: Ctrl-C or SIGTERM ended the scoring. The message has the number of units that are
        kept.
    """
    target = _check(inputs, output, id)
    # Beam logs the traceback of an error before it raises the error.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    from cli.console import error_console, print_line, quiet_tensorflow, silent_stderr
    from cli.models import last_pushed_model
    from core.processes import large_imports
    from platforms.flink import checks as flink
    from preprocessing.labels import model_labels

    quiet_tensorflow()
    files = [("--input", name) for name in inputs]
    outputs = [("--output", target), ("paths.serving", config.paths.serving)]
    flink.check_paths(config, [*files, *outputs])
    flink.check_local(config)
    with silent_stderr():
        model = last_pushed_model(config)
        noun = model_labels(model).noun
        # The imports take seconds, and a missing model is reported before them.
        with large_imports():
            from pipeline.inputs import read_options
            from platforms.beam import beam_args, check_beam_args
            from preprocessing.reading.records import shown_reasons
            from serving.batch.run import Interrupted, score_files

        check_beam_args(config)

    options = replace(read_options(config), id=id)
    start = time.monotonic()
    try:
        with ShownProgress(error_console().status("inspecting the input"), noun):
            args = beam_args(config)
            summary = score_files(inputs, target, model, options, args, all_probabilities)
    except Interrupted as error:
        print(f"interrupted: {error}; repeat the command to continue", file=sys.stderr)
        raise
    scored = noun if summary.reviews == 1 else f"{noun}s"
    print_line(f"{summary.reviews:,} {scored} scored in {time.monotonic() - start:.1f} s: {target}")
    if summary.resumed:
        print_line(f"units that were already finished: {summary.resumed}")
    for way in summary.reading:
        print_line(f"read as {way}")
    for line in summary.unused[:_FILES_SHOWN]:
        print_line(line)
    more = len(summary.unused) - _FILES_SHOWN
    if more > 0:
        print_line(f"further files without a usable line: {more}")
    if summary.rejected:
        reasons = shown_reasons(summary.rejected)
        print_line(f"rejected lines ({reasons}): {target}.rejected.jsonl")
    return not summary.rejected


def _check(inputs: Sequence[str], output: str | None, id: str | None) -> str:
    """Check the arguments; return the output as an absolute path or URL.

    Raises:
      InputError: an argument is missing, empty or cannot be used.
    """
    if "" in inputs:
        raise InputError("--input: a value is empty; give each file a name")
    if not inputs:
        raise InputError(
            "--output, --id and --probabilities require --input: files, folders or globs"
        )
    if output is None:
        raise InputError("--input requires --output: give a .csv, .jsonl or .parquet file")
    path = output if is_url(output) else output_path(output)
    if not path.lower().endswith((".csv", ".jsonl", ".parquet")):
        raise InputError(f"--output: {path} must be a .csv, .jsonl or .parquet file")
    if not is_url(path):
        _check_replaced(path)
    return path


def _check_replaced(path: str) -> None:
    """Check that an output replaces only an earlier output, and no reviews, by its first columns.

    Raises:
      ConfigError: the file contains something else, or cannot be read.
    """
    suffix = path.lower().rpartition(".")[2]
    begins = {"csv": "file,position,", "jsonl": '{"file": ', "parquet": "PAR1"}[suffix]
    kind = "an earlier output of predict"
    check_replaced(Path(path), begins, kind)
    if suffix != "parquet" or not os.path.exists(path) or not os.path.getsize(path):
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowException):
        names = []
    if names[:2] != ["file", "position"]:
        refuse_to_replace(Path(path), kind)
