"""The steps that score the reviews of files: find, detect, cut, score with Beam, join.

| step | module | input | output |
|---|---|---|---|
| find the files | `find_inputs` | names, folders, globs | `SourceFile` |
| detect the layout, cut | `preprocessing.reading` | files | `Piece` |
| divide, skip what is finished | `work` | pieces | `ScoringUnit` |
| read, score | `work.ScoreUnit` | a unit | a file in the work folder |
| join, publish | `output` | the work folder | the output and the rejected file |
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from core import progress
from core.code_version import all_code
from core.errors import InputError, UserError, cause
from core.local_beam import make_pipeline
from core.storage import expand_home, is_url
from preprocessing.labels import model_labels
from preprocessing.reading import globs
from preprocessing.reading.files import SourceFile, fingerprint, match_files, select_same_paths
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.records import ReadOptions, unused_file
from serving.batch import output, work
from serving.batch.work import ScoringUnit, divide_into_units
from serving.identity import identity


class Summary(NamedTuple):
    """The result of a batch.

    Attributes:
      reviews: the number of scored reviews.
      rejected: reason -> number of rejected lines.
      resumed: the number of units that an earlier run scored.
      reading: the formats and columns of the files, in a few lines.
      unused: a line for each file whose lines are all rejected.
    """

    reviews: int
    rejected: dict[str, int]
    resumed: int
    reading: list[str]
    unused: list[str]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM while units were scored. The message has the number of units that are kept.

    SIGTERM has this effect only in a process that raises KeyboardInterrupt after it.
    """


def score_files(
    inputs: Sequence[str],
    target: str,
    model: str,
    options: ReadOptions,
    beam_args: Sequence[str] = (),
    all_probabilities: bool = False,
) -> Summary:
    """Score every review of the input, and publish the output when it is complete.

    The units of the progress are `progress.REVIEWS`, which counts lines of reviews or rejected, and
    `progress.BYTES`, which counts estimated bytes of text and has a total.

    Args:
      inputs: see `find_inputs`.
      target: the output, a path or URL that ends in .csv, .jsonl or .parquet.
      model: the folder of a pushed model, or its URL.
      options: the options of the readers; labels are never read.
      beam_args: the arguments of the Beam pipeline.
      all_probabilities: whether the output contains the probabilities of all classes.

    Returns:
      The counts and the formats of what was read and scored.

    Raises:
      InputError: a path matches no file, an input file cannot be read, the model is not complete,
        the output would replace an input file, another process writes the output, the folder of
        the output cannot be written or locked, or an input file changed while it was scored.
      UserError: the Beam pipeline failed. Finished units stay in the work folder.
      OSError: the model cannot be read, or the output cannot be written. The file systems of
        TensorFlow and Beam have errors of their own.
      Interrupted: Ctrl-C or SIGTERM, after the input was inspected.
    """
    labels = model_labels(model)
    options = replace(options, reads_labels=False, trained=labels.columns)
    files = find_inputs(inputs)
    _refuse_to_replace(files, target)
    layouts = decide_layouts(files, options)
    pairs = zip(files, layouts, strict=True)
    units = divide_into_units(
        piece for file, layout in pairs for piece in cut_file(file.path, layout)
    )
    parent, _, name = target.rpartition("/")
    folder = f"{parent}/.{name}.partial"
    with work.locked(folder, target):
        key = fingerprint("", files)
        digest = _digest(key, units, options, model, all_probabilities)
        stored = {
            f"{folder}/{digest}-{number:06d}.arrow": unit for number, unit in enumerate(units)
        }
        finished = set(filter(FileSystems.exists, stored))
        try:
            stage = work.ScoreUnit(model, labels, all_probabilities)
            _score(stored, finished, stage, beam_args)
            if fingerprint("", select_same_paths(files, find_inputs(inputs))) != key:
                work.remove(folder)
                raise InputError("--input: a file changed while it was scored; repeat the command")
            counts = output.publish(
                stored,
                folder,
                target,
                labels,
                has_id=options.id is not None,
                all_probabilities=all_probabilities,
            )
        except KeyboardInterrupt:
            raise Interrupted(_kept(stored)) from None
        work.remove(folder)
    reviews = sum(file_counts.reviews for file_counts in counts.values())
    rejected = sum((file_counts.rejected for file_counts in counts.values()), Counter[str]())
    unused = [
        unused_file(path, file_counts.rejected, file_counts.first)
        for path, file_counts in counts.items()
        if file_counts.first and not file_counts.reviews
    ]
    return Summary(reviews, dict(rejected), len(finished), describe(layouts), unused)


def _kept(stored: Mapping[str, ScoringUnit]) -> str:
    """Return a clause with the number of finished units, which the next run does not repeat."""
    finished = sum(map(FileSystems.exists, stored))
    return f"{finished} of {len(stored)} units are kept"


def _digest(
    files: str,
    units: Sequence[ScoringUnit],
    options: ReadOptions,
    model: str,
    all_probabilities: bool,
) -> str:
    """Return a digest of everything that determines the lines of the units."""
    depends_on = (files, units, options, model, identity(model), all_code(), all_probabilities)
    return hashlib.sha256(repr(depends_on).encode()).hexdigest()[:16]


def find_inputs(words: Iterable[str]) -> list[SourceFile]:
    """Return the files of an input, each once, in the order of `words`.

    Args:
      words: paths or URLs of files and folders, and globs in the syntax of
        `preprocessing.reading.globs`. The files of a folder are those that a training would read.
        A file with its full path is included even if it is hidden or belongs to a table.

    Returns:
      The files. Those of one word are sorted by name.

    Raises:
      InputError: a word matches no file, or a file cannot be listed.
    """
    found: dict[str, SourceFile] = {}
    for word in words:
        for file in _files(word if is_url(word) else os.path.abspath(expand_home(word))):
            found.setdefault(file.path, file)
    return list(found.values())


def _files(word: str) -> Sequence[SourceFile]:
    # The name of an existing file may contain the special characters of a glob.
    if not is_url(word) and os.path.isfile(word):
        return [SourceFile(word, os.stat(word).st_size)]
    base, _, pattern = globs.literal_prefix(word).rpartition("/")
    pattern += word.removeprefix(globs.literal_prefix(word))
    files = match_files(word, globs.EVERYTHING) or match_files(base, pattern)
    if not files:
        raise InputError(
            f"--input: {word} matches no file; give files, folders or globs (* and ** match no "
            "hidden files, READMEs, checksums and backups)"
        )
    return files


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
    stored: Mapping[str, ScoringUnit],
    finished: set[str],
    stage: work.ScoreUnit,
    beam_args: Sequence[str],
) -> None:
    """Score the units that are not finished.

    Raises:
      UserError: the Beam pipeline failed.
      KeyboardInterrupt: Ctrl-C or SIGTERM, see `Interrupted`.
    """
    progress.report(progress.BYTES, 0, sum(map(work.text_size, stored.values())))
    for path in finished:
        progress.report(progress.BYTES, work.text_size(stored[path]), source=path)
    waiting = [(path, unit) for path, unit in stored.items() if path not in finished]
    try:
        with make_pipeline(beam_args) as pipeline:
            _ = (
                pipeline
                | "Units" >> beam.Create(waiting)
                | "Spread" >> beam.Reshuffle()
                | "ScoreUnit" >> beam.ParDo(stage)
            )
    except UserError:
        raise
    except Exception as error:  # every runner has exceptions of its own
        if str(error).strip().rpartition("\n")[2].startswith(KeyboardInterrupt.__name__):
            # Beam's local runner converts KeyboardInterrupt to an error with this text.
            raise KeyboardInterrupt from None
        raise UserError(
            f"scoring failed: {cause(error)}. Remove the cause and repeat the command; "
            f"{_kept(stored)}"
        ) from error
