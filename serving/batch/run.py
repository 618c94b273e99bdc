"""Score the reviews of files: find, detect, cut, score by Beam, join. Read this module first.

| step | module | input | output |
|---|---|---|---|
| find the files | `find_inputs` | names, folders, globs | `SourceFile` |
| detect the layout, cut | `preprocessing.reading` | files | `Piece` |
| divide, skip what is finished | `work` | pieces | `Unit` |
| read, score | `stage` | a unit | files in the work folder |
| join, publish | `output` | the work folder | the output and the rejected file |
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import metadata
from typing import NamedTuple

import apache_beam as beam
import tensorflow as tf
from apache_beam.io.filesystems import FileSystems

from core import progress
from core.errors import InputError, UserError
from core.local_beam import make_pipeline
from preprocessing.reading import globs
from preprocessing.reading.files import (
    SourceFile,
    file_size,
    fingerprint,
    match_files,
)
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.records import ReadOptions
from serving.batch import output, stage, work
from serving.batch.work import Unit, in_units


class Request(NamedTuple):
    """A request to score the reviews of files.

    Attributes:
      inputs: see `find_inputs`.
      output: a path or URL; its suffix is one of `output.FORMATS`.
      model_folder: a pushed model.
      options: the options of the readers; labels are always optional.
      beam_args: the arguments of the Beam pipeline.
    """

    inputs: Sequence[str]
    output: str
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
      InputError: see `find_inputs` and `decide_layouts`; the output would replace an input file or
        cannot be written; or another process is writing it.
      UserError: the Beam pipeline failed. Finished units stay in the work folder.
    """
    options = replace(request.options, labels="optional")
    files = find_inputs(request.inputs)
    _refuse_to_replace(files, request.output)
    layouts = decide_layouts(files, options)
    pairs = zip(files, layouts, strict=True)
    units = in_units(piece for file, layout in pairs for piece in cut_file(file.path, layout))
    folder = work.work_folder(request.output)
    with work.locked(folder):
        resumed = _score(request, files, units, folder)
        rejected = output.publish(units, folder, request.output, options.id is not None)
        lines = sum(work.finished(folder).values())
        work.remove(folder)
    return Summary(lines - rejected.total(), dict(rejected), resumed, describe(layouts))


def find_inputs(words: Iterable[str]) -> list[SourceFile]:
    """Return each file of an input once, in the order of `words`; the files of one word by name.

    Args:
      words: paths or URLs of files and folders, and globs in the syntax of
        `preprocessing.reading.globs`. The files of a folder are those that a training would read.

    Raises:
      InputError: a word matches no file, or a file cannot be listed.
    """
    found: dict[str, SourceFile] = {}
    for word in words:
        for file in _files(word if "://" in word else os.path.abspath(os.path.expanduser(word))):
            found.setdefault(file.path, file)
    return list(found.values())


def _files(word: str) -> Sequence[SourceFile]:
    is_local = FileSystems.get_scheme(word) is None
    if is_local and os.path.isdir(word):
        files = match_files(word, globs.EVERYTHING)
    elif is_local and os.path.exists(word):
        # The name of an existing file may contain the special characters of a glob.
        status = os.stat(word)
        files = [SourceFile(word, file_size(word), status.st_mtime)]
    else:
        base = _existing_folder(word) if is_local else globs.literal_prefix(word).rpartition("/")[0]
        files = match_files(base, word.removeprefix(base).lstrip("/"))
        if not files and not is_local and globs.is_literal(word):
            files = match_files(word, globs.EVERYTHING)
    if not files:
        raise InputError(f"--input: {word} matches no file; give files, folders or globs")
    return files


def _existing_folder(path: str) -> str:
    """Return the longest beginning of an absolute path that is a folder; it is not a pattern."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


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


def _score(request: Request, files: list[SourceFile], units: list[Unit], folder: str) -> int:
    """Score the units that are not finished; return the number of units that were finished."""
    depends_on = {
        "input": fingerprint("", files),
        "model": _model_fingerprint(request.model_folder),
        "options": repr(request.options),
        "version": metadata.version("amazon-reviews"),
    }
    work.start_or_resume(folder, units, depends_on)
    before = work.finished(folder)
    progress.report(stage.BYTES, 0, sum(unit.bytes for unit in units))
    for number, lines in before.items():
        progress.report(stage.REVIEWS, lines, source=str(number))
        progress.report(stage.BYTES, units[number].bytes, source=str(number))
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
        raise UserError(
            f"scoring failed: {last}. Remove the cause and repeat the command (the finished "
            f"units are kept in {folder})"
        ) from error
    return len(before)


def _model_fingerprint(folder: str) -> str:
    """Return the folder of a model, with the size and time of its graph."""
    status = tf.io.gfile.stat(f"{folder}/saved_model.pb")
    return f"{folder},bytes:{status.length},modified:{status.mtime_nsec}"
