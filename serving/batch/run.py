"""Score the reviews of files: find, detect, cut, score by Beam, join. Read this module first.

| step | module | input | output |
|---|---|---|---|
| find the files | `find_inputs` | names, folders, globs | `SourceFile` |
| detect the layout, cut | `preprocessing.reading` | files | `Piece` |
| divide, skip what is finished | `work` | pieces | `Unit` |
| read, score | `work.ScoreUnit` | a unit | files in the work folder |
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

from core import progress
from core.errors import InputError, UserError
from core.local_beam import make_pipeline
from preprocessing.reading import globs
from preprocessing.reading.files import SourceFile, fingerprint, match_files
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.records import ReadOptions
from serving.batch import output, work
from serving.batch.work import Unit, in_units


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


def score_files(
    inputs: Sequence[str],
    target: str,
    model: str,
    options: ReadOptions,
    beam_args: Sequence[str] = (),
) -> Summary:
    """Score every review of the input; publish the output when all of it is complete.

    The units of the reported progress are `reviews`, and `bytes` with a total.

    Args:
      inputs: see `find_inputs`.
      target: the output, a path or URL that ends in .csv, .jsonl or .parquet.
      model: folder of a pushed model.
      options: the options of the readers; labels are always optional.
      beam_args: the arguments of the Beam pipeline.

    Raises:
      InputError: see `find_inputs` and `decide_layouts`; the output would replace an input file or
        cannot be written; or another process is writing it.
      UserError: the Beam pipeline failed. Finished units stay in the work folder.
    """
    options = replace(options, labels="optional")
    files = find_inputs(inputs)
    _refuse_to_replace(files, target)
    layouts = decide_layouts(files, options)
    pairs = zip(files, layouts, strict=True)
    units = in_units(piece for file, layout in pairs for piece in cut_file(file.path, layout))
    graph = tf.io.gfile.stat(f"{model}/saved_model.pb")
    digest = work.digest(
        *(fingerprint("", files), units, options),
        *(model, graph.length, graph.mtime_nsec, metadata.version("amazon-reviews")),
    )
    folder = work.work_folder(target)
    with work.lock(folder):
        work.remove_others(folder, digest)
        before = work.finished(folder, digest)
        _score(units, before, work.ScoreUnit(model, folder, digest), beam_args)
        lines = work.finished(folder, digest)
        stored = {work.unit_file(folder, digest, u.number, lines[u.number]): u for u in units}
        rejected = output.publish(stored, folder, target, options.id is not None)
        work.remove(folder)
    reviews = sum(lines.values()) - rejected.total()
    return Summary(reviews, dict(rejected), len(before), describe(layouts))


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
    is_local = work.is_local(word)
    if is_local and os.path.isfile(word):
        # The name of an existing file may contain the special characters of a glob.
        status = os.stat(word)
        return [SourceFile(word, status.st_size, status.st_mtime)]
    base = _existing_folder(word) if is_local else globs.literal_prefix(word).rpartition("/")[0]
    files = match_files(base, word.removeprefix(base).lstrip("/"))
    if not files:
        files = match_files(word, globs.EVERYTHING)
    if not files:
        raise InputError(f"--input: {word} matches no file; give files, folders or globs")
    return files


def _existing_folder(path: str) -> str:
    """Return the longest beginning of an absolute path that is a folder; it is not a pattern."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _refuse_to_replace(files: Sequence[SourceFile], target: str) -> None:
    written = set(map(os.path.realpath, (target, output.rejected_path(target))))
    for file in files:
        # A URL has no symbolic links.
        if os.path.realpath(file.path) in written:
            raise InputError(
                f"--output: {file.path} is an input and would be replaced; name an output that no "
                "--input matches"
            )


def _score(
    units: list[Unit], finished: dict[int, int], score: work.ScoreUnit, beam_args: Sequence[str]
) -> None:
    """Score the units that are not finished."""
    progress.report(work.BYTES, 0, sum(unit.bytes for unit in units))
    for number, lines in finished.items():
        progress.report(work.REVIEWS, lines, source=str(number))
        progress.report(work.BYTES, units[number].bytes, source=str(number))
    try:
        with make_pipeline(beam_args) as pipeline:
            _ = (
                pipeline
                | "Units" >> beam.Create([unit for unit in units if unit.number not in finished])
                | "Spread" >> beam.Reshuffle()
                | "ScoreUnit" >> beam.ParDo(score)
            )
    except UserError:
        raise
    except Exception as error:  # every runner has exceptions of its own
        last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        if last.startswith(KeyboardInterrupt.__name__):
            # The runner in this process turns Ctrl-C into an error with this text.
            raise KeyboardInterrupt from None
        raise UserError(
            f"scoring failed: {last}. Remove the cause and repeat the command; finished units are "
            "kept"
        ) from error
