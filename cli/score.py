"""`amazon-reviews predict --input … --output …`: files of reviews to a file of predictions."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from core import progress
from core.errors import InputError

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig
    from serving.batch.run import Summary

_STREAM = "-"
_FORMATS = ("csv", "jsonl", "parquet")
_REFRESH_PER_SECOND = 4


def score(
    inputs: Sequence[str], output: str | None, format: str | None, config: PipelineConfig
) -> bool:
    """Score the reviews of files and print the counts; return whether every line was scored.

    Args:
      inputs: files, folders and globs; or `-` alone, for standard input.
      output: a file, or `-` for standard output.
      format: format of standard output; None: csv.
      config: the settings.

    Raises:
      ConfigError: the arguments contradict each other, or paths.serving cannot be read.
    """
    target = _check(inputs, output, format)
    # TensorFlow logs while it is imported and while it loads a model.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from cli.console import silent_stderr
    from cli.model import last_pushed_model
    from platforms import flink

    files = [("--input", name) for name in inputs]
    outputs = [("--output", target), ("paths.serving", config.paths.serving)]
    flink.check_paths(config, [*files, *outputs])
    flink.check_local(config)
    flink.check_job(config)
    with silent_stderr():
        from pipeline.inputs import read_options
        from platforms.beam import beam_args
        from serving.batch.run import Request, score_files

        model = last_pushed_model(config)
    request = Request(
        inputs,
        target,
        format or _FORMATS[0],
        model,
        read_options(config),
        beam_args(config),
    )
    start = time.monotonic()
    with _bar(Console(stderr=True)):
        summary = score_files(request)
    lines = [_counts(summary, target, time.monotonic() - start)]
    lines += [f"read as {way}" for way in summary.reading]
    print("\n".join(lines), file=sys.stderr if target == _STREAM else sys.stdout, flush=True)
    return not summary.rejected


def _check(inputs: Sequence[str], output: str | None, format: str | None) -> str:
    """Check the arguments; return the output as an absolute path or URL, or `-`."""
    if not inputs:
        raise InputError("--output requires --input: give files, folders or globs, or - for stdin")
    if output is None:
        raise InputError("--input requires --output: give a .csv, .jsonl or .parquet file, or -")
    if _STREAM in inputs and len(inputs) > 1:
        raise InputError("--input: - is standard input, and cannot be combined with files")
    if output == _STREAM:
        return output
    if format is not None:
        raise InputError(
            f"--format applies to `--output -` only; the suffix of {output} determines its format"
        )
    if PurePosixPath(output).suffix.lower().lstrip(".") not in _FORMATS:
        raise InputError(f"--output: {output} must end in .csv, .jsonl or .parquet, or be -")
    if "://" in output:
        return output
    path = os.path.abspath(os.path.expanduser(output))
    if os.path.isdir(path):
        raise InputError(f"--output: {output} is a folder; name a file")
    return path


def _counts(summary: Summary, target: str, seconds: float) -> str:
    rejected = sum(summary.rejected.values())
    noun = "review" if summary.reviews == 1 else "reviews"
    line = f"{summary.reviews:,} {noun} scored in {seconds:.1f} s"
    if summary.resumed:
        line += f" (units that were already finished: {summary.resumed})"
    if target != _STREAM:
        line += f": {target}"
    if rejected:
        reasons = ", ".join(f"{name} {count:,}" for name, count in sorted(summary.rejected.items()))
        place = "above" if target == _STREAM else f"{target}.rejected.jsonl"
        line += (
            f"; {rejected:,} {'line' if rejected == 1 else 'lines'} rejected ({reasons}): {place}"
        )
    return line


@contextmanager
def _bar(console: Console) -> Iterator[None]:
    """Show the records of `core.progress` as a bar, if standard error is a terminal."""
    if not console.is_terminal:
        yield
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=_REFRESH_PER_SECOND,
        transient=True,
    )
    handler = _BarHandler(bar)
    progress.LOGGER.addHandler(handler)
    try:
        with bar:
            yield
    finally:
        progress.LOGGER.removeHandler(handler)


class _BarHandler(logging.Handler):
    """A logging handler that shows the reviews and the bytes of all units of work."""

    def __init__(self, bar: Progress):
        super().__init__(logging.INFO)
        self._bar = bar
        self._task = bar.add_task("inspecting the input", total=None)
        self._done: dict[str, dict[str, int]] = {"reviews": {}, "bytes": {}}

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record of `core.progress.LOGGER`."""
        values = progress.values(record)
        if values["unit"] not in self._done:
            return  # Flink reports its tasks too.
        if values["total"] is not None:
            self._bar.update(self._task, total=values["total"])
        done = self._done[values["unit"]]
        done[values["source"]] = values["done"]
        self._bar.update(
            self._task,
            description=f"{sum(self._done['reviews'].values()):,} reviews",
            completed=sum(self._done["bytes"].values()),
        )
