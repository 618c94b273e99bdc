"""Score the reviews of files: find, detect, cut, score by Beam, join. Read this module first.

| step | module | input | output |
|---|---|---|---|
| find the files | `inputs` | names, folders, globs | `SourceFile` |
| detect the layout, cut | `preprocessing.reading` | files | `Piece` |
| divide | `units` | pieces | `Unit` |
| skip what is finished | `work` | units | units |
| read, score | `stage`, `scorer` | a unit | files in the work folder |
| join, publish | `output` | the work folder | the output and the rejected file |
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from typing import NamedTuple

import apache_beam as beam

from core import progress
from core.errors import InputError, UserError
from core.local_beam import make_pipeline
from preprocessing.reading.files import SourceFile, fingerprint
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.records import ReadOptions
from serving.batch import output, scorer, stage, work
from serving.batch.inputs import STANDARD_STREAM, find_inputs, spool_standard_input
from serving.batch.units import Unit, in_units

_SECONDS_BETWEEN_REPORTS = 1.0


class BatchError(UserError):
    """Scoring that failed for a reason outside the input, such as a full disk."""


class Request(NamedTuple):
    """A request to score the reviews of files.

    Attributes:
      inputs: see `inputs.find_inputs`; or `-` alone, for standard input.
      output: a path or URL, or `-` for standard output.
      format: format of standard output, one of `output.FORMATS`.
      model_folder: a pushed model.
      options: the options of the readers; labels are always optional.
      beam_args: the arguments of the Beam pipeline.
    """

    inputs: Sequence[str]
    output: str
    format: str
    model_folder: str
    options: ReadOptions
    beam_args: Sequence[str]


class Summary(NamedTuple):
    """The result of a batch.

    Attributes:
      reviews: the number of scored reviews.
      rejected: reason -> rejected lines.
      resumed: the number of units that an earlier run scored.
      reading: the formats and columns of the files, in a few lines.
    """

    reviews: int
    rejected: dict[str, int]
    resumed: int
    reading: list[str]


def score_files(request: Request) -> Summary:
    """Score every review of the input; publish the output when all of it is complete.

    The units of the reported progress are `stage.REVIEWS`, and `stage.BYTES` with a total.

    Raises:
      InputError: see `find_inputs` and `decide_layouts`; or the output would replace an input file.
      OutputError: the output cannot be written, or another process is writing it.
      BatchError: the Beam pipeline failed. Finished units stay in the work folder.
    """
    options = replace(request.options, labels="optional")
    with tempfile.TemporaryDirectory(prefix="reviews-") as scratch:
        if STANDARD_STREAM in request.inputs:
            files = [spool_standard_input(scratch)]
            names = {files[0].path: STANDARD_STREAM}
        else:
            files, names = find_inputs(request.inputs), {}
            _refuse_to_replace(files, request.output)
        layouts = decide_layouts(files, options)
        pieces = [
            piece
            for file, layout in zip(files, layouts, strict=True)
            for piece in cut_file(file.path, layout)
        ]
        units = list(in_units(pieces))
        with _folder(request.output, scratch) as folder:
            resumed = _score(request, files, units, folder)
            if request.output == STANDARD_STREAM:
                output.print_to_standard_streams(units, folder, names, request.format)
            else:
                output.publish(units, folder, names, request.output)
            summary = _summary(units, folder, resumed, describe(layouts))
            work.remove(folder)
    return summary


def _refuse_to_replace(files: Sequence[SourceFile], target: str) -> None:
    written = {_place(target), _place(output.rejected_path(target))}
    for file in files:
        if _place(file.path) in written:
            raise InputError(
                f"--output: {file.path} is an input and would be replaced; name an output that no "
                "--input matches"
            )


def _place(path: str) -> str:
    """Return a local path without symbolic links, and a URL unchanged."""
    return os.path.realpath(path) if work.is_local(path) else path


@contextmanager
def _folder(target: str, scratch: str) -> Iterator[str]:
    """Yield the work folder; for standard output it is a temporary folder."""
    if target == STANDARD_STREAM:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            yield folder
        return
    folder = work.work_folder(target)
    with work.locked(folder):
        yield folder


def _score(request: Request, files: list[SourceFile], units: list[Unit], folder: str) -> int:
    """Score the units that are not finished; return the number of units that were finished."""
    depends_on = {
        "input": fingerprint("", files),
        "model": scorer.fingerprint(request.model_folder),
        "options": repr(request.options),
        "version": metadata.version("amazon-reviews"),
    }
    work.start_or_resume(folder, units, depends_on)
    before = work.finished(folder)
    progress.report(stage.BYTES, 0, sum(unit.bytes for unit in units))
    with _reporting_finished_units(units, folder):
        try:
            with make_pipeline(request.beam_args) as pipeline:
                _ = (
                    pipeline
                    | "Units" >> beam.Create([unit for unit in units if unit.number not in before])
                    | "Spread" >> beam.Reshuffle()
                    | "ScoreUnit" >> beam.ParDo(stage.ScoreUnit(request.model_folder, folder))
                )
        except UserError:
            raise
        except Exception as error:  # every runner has exceptions of its own
            last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            if last.startswith(KeyboardInterrupt.__name__):
                # The runner in this process turns Ctrl-C into an error with this text.
                raise KeyboardInterrupt from None
            raise BatchError(
                f"scoring failed: {last}. The finished units are kept in {folder}: remove the "
                "cause and repeat the command"
            ) from error
    return len(before)


@contextmanager
def _reporting_finished_units(units: list[Unit], folder: str) -> Iterator[None]:
    """Report the units that any machine finishes, as they appear in the work folder."""
    ended = threading.Event()
    reported: set[int] = set()

    def report() -> None:
        for number in work.finished(folder) - reported:
            done = work.read_done(folder, number)
            lines = done.reviews + sum(done.counts.values())
            progress.report(stage.REVIEWS, lines, source=str(number))
            progress.report(stage.BYTES, units[number].bytes, source=str(number))
            reported.add(number)

    def watch() -> None:
        while not ended.wait(_SECONDS_BETWEEN_REPORTS):
            report()

    report()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    report()


def _summary(units: list[Unit], folder: str, resumed: int, reading: list[str]) -> Summary:
    rejected: Counter[str] = Counter()
    reviews = 0
    for unit in units:
        done = work.read_done(folder, unit.number)
        reviews += done.reviews
        rejected.update(done.counts)
    return Summary(reviews, dict(rejected), resumed, reading)
