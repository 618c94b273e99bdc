"""Read the new reviews of a comparison, draw a sample of them, and score it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from core.errors import InputError
from core.machine import cores
from preprocessing.labels import Labels
from preprocessing.reading.columns import Layout, MissingColumnsError
from preprocessing.reading.detect import Inspection
from preprocessing.reading.file_format import UnknownFormatError
from preprocessing.reading.files import SourceFile
from preprocessing.reading.labels import CollectedLabels
from preprocessing.reading.layouts import (
    choose_layouts,
    compare_files,
    decide_layouts,
    describe,
    inspect_files,
)
from preprocessing.reading.listing import listed
from preprocessing.reading.pieces import Piece, cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import (
    BAD_LABEL,
    EACH_TASK,
    STARS_TASK,
    Batch,
    ReadOptions,
    shown_reasons,
)
from serving.batch.run import find_inputs
from serving.drift.reference import (
    LEAST_REVIEWS,
    TEXTS,
    UNLABELLED,
    ScoredReviews,
    beginning,
    rows,
)
from serving.predict_text import PredictText

_TEXTS_AT_ONCE = 1_024
_SHOWN = 8
"""Maximum number of classes in a message."""


@dataclass(frozen=True)
class NewReviews:
    """A random sample of the reviews of some files.

    Attributes:
      texts: their texts in UTF-8, in random order.
      labels: see `ScoredReviews`.
      total: the number of reviews of the files.
      rejected: reason -> number of lines that could not be read.
      reading: the formats and columns of the files, in a few lines.
      neutral: the number of lines that were left out because of their label.
      unlabelled: the reason why labels were not read, or not those of all reviews; empty if all
        were.
      new_classes: the labels that are no class of the model, if each label is a class.
    """

    texts: Sequence[bytes]
    labels: np.ndarray | None
    total: int
    rejected: Mapping[str, int]
    reading: Sequence[str]
    neutral: int = 0
    unlabelled: str = ""
    new_classes: Sequence[str] = ()


def read_new_reviews(words: Sequence[str], options: ReadOptions, classes: Labels) -> NewReviews:
    """Return a sample of the reviews of some files, with their labels if they have some.

    If some reviews have labels, those with a label that the settings leave out are not read, as in
    a training. Reviews without a label are read without it. So are those with a label of no class,
    unless each label is a class: then it is a class that the model does not know.

    Args:
      words: paths or URLs of files and folders, and globs, see `find_inputs`.
      options: the options of a training for reading files.
      classes: the classes of the model. Labels that fit the scale of its training have that scale.

    Raises:
      InputError: a word matches no file, a file cannot be read, or there are fewer than
        LEAST_REVIEWS reviews.
      OSError: a file cannot be read.
    """
    files = find_inputs(words)
    options = _with_format(files, replace(options, trained=classes.columns))
    try:
        found = _read_labelled(files, options, classes)
    except InputError as error:
        found = _read(files, replace(options, reads_labels=False), classes)
        found = replace(found, labels=None, unlabelled=str(error))
    if len(found.texts) < LEAST_REVIEWS:
        reasons = shown_reasons(found.rejected)
        rejected = f" and lines that cannot be read ({reasons})" if reasons else ""
        raise InputError(
            f"--input: {len(found.texts)} {classes.nouns}{rejected}; a comparison requires at "
            f"least {LEAST_REVIEWS} {classes.nouns}"
        )
    return found


def _read_labelled(
    files: Sequence[SourceFile], options: ReadOptions, classes: Labels
) -> NewReviews:
    """Return a sample of the reviews with their labels.

    Raises:
      InputError: no review has a label of a class of the model, or a file cannot be read.
    """
    if problem := _other_classes(options, classes):
        raise InputError(problem)
    found = _read(files, replace(options, reads_labels=True), classes)
    without = int(np.count_nonzero(found.labels == UNLABELLED))
    if not np.isin(np.asarray(found.labels), range(classes.number)).any():
        left_out = f", and {found.neutral:,} are left out" if found.neutral else ""
        raise InputError(f"no line has a label of a class of the model{left_out}")
    if not without:
        return found
    share = f"{without:,} of {len(found.texts):,} {classes.nouns}"
    verb = "has" if without == 1 else "have"
    return replace(found, unlabelled=f"{share} {verb} no label of a class of the model")


def score(new: NewReviews, predict: PredictText, classes: Labels) -> ScoredReviews:
    """Return the reviews with the scores of a model.

    Args:
      new: the reviews.
      predict: the model.
      classes: its classes.

    Raises:
      tensorflow.errors.OpError: the model failed.
    """
    parts = [
        np.asarray(predict(new.texts[start : start + _TEXTS_AT_ONCE])[classes.scores_name])
        for start in range(0, len(new.texts), _TEXTS_AT_ONCE)
    ]
    scores = np.concatenate(parts).reshape(-1, *classes.scores_shape).astype(np.float32)
    return ScoredReviews(scores, [beginning(text) for text in new.texts[:TEXTS]], new.labels)


def _with_format(files: Sequence[SourceFile], options: ReadOptions) -> ReadOptions:
    """Return the options with the format `auto`, unless a file has no format that is detected.

    New reviews may have another format than the files of the training.
    """
    detected = replace(options, format="auto", reads_labels=False)
    try:
        decide_layouts(files, detected)
    except InputError:
        return options
    return replace(options, format="auto")


def _other_classes(options: ReadOptions, classes: Labels) -> str:
    """Return a clause if labels cannot have the classes of the model; otherwise an empty text."""
    if options.task in (STARS_TASK, EACH_TASK) or options.classes == classes.names:
        return ""
    return (
        f"data.labels has the classes {listed(list(options.classes), _SHOWN)}, and the model "
        f"{listed(list(classes.names), _SHOWN)}; pass the settings of its run with --config"
    )


def _read(files: Sequence[SourceFile], options: ReadOptions, classes: Labels) -> NewReviews:
    layouts = [_of_model(one, options, classes) for one in _layouts(files, options, classes)]
    pairs = zip(files, layouts, strict=True)
    pieces = [piece for file, layout in pairs for piece in cut_file(file.path, layout)]
    draw = _Draw(rows(classes))
    rejected: Counter[str] = Counter()
    index_of = {name: label for label, name in enumerate(classes.names)}
    neutral = 0
    new_classes: set[str] = set()
    with ThreadPoolExecutor(cores()) as pool:
        for piece in pieces:
            unlabelled: set[int] = set()
            for batch in read_batches(piece, pool):
                draw.add(batch.texts, _labels(batch, piece.layout, index_of))
                neutral += len(batch.neutrals)
                rejected.update(line.reason for line in batch.rejected)
                unlabelled |= {line.position for line in batch.rejected if line.reason == BAD_LABEL}
            if piece.layout.collected is not None:
                new_classes |= piece.layout.collected.names.keys() - index_of.keys()
            for texts in _texts_at(piece, unlabelled, pool) if unlabelled else ():
                draw.add(texts, [UNLABELLED] * len(texts))
    del rejected[BAD_LABEL]  # these lines are read without their labels
    texts, drawn = draw.drawn()
    return NewReviews(
        texts,
        drawn,
        draw.total,
        dict(rejected),
        describe(layouts),
        neutral,
        new_classes=sorted(new_classes),
    )


def _labels(batch: Batch, layout: Layout, index_of: Mapping[str, int]) -> Sequence[int]:
    """Return the label of each review in a batch, see `ScoredReviews`.

    Args:
      batch: the batch.
      layout: the layout of its file.
      index_of: name of a class of the model -> its index.
    """
    if not layout.reads_labels:
        return [UNLABELLED] * len(batch.texts)
    if layout.collected is None:
        return batch.labels
    found = [index_of.get(name, len(index_of)) for name in layout.collected.names]
    return [found[number] for number in batch.labels]


def _layouts(files: Sequence[SourceFile], options: ReadOptions, classes: Labels) -> list[Layout]:
    """Return the layout of each file. Beside files with labels, one without them has none to read.

    Raises:
      InputError: for the reasons in `decide_layouts`.
    """
    tried = compare_files(files, inspect_files(files, options), options)
    found = [item for item in tried if isinstance(item, Inspection)]
    if len(found) == len(files):
        return choose_layouts(files, found, options, classes.label_scale)
    without = replace(options, reads_labels=False)
    unlabelled = _unlabelled(files, tried, without) if options.reads_labels else []
    labelled = [file for file in files if file not in unlabelled]
    if not labelled or not unlabelled:
        return decide_layouts(files, options, classes.label_scale)
    layouts = [
        *decide_layouts(labelled, options, classes.label_scale),
        *decide_layouts(unlabelled, without),
    ]
    of_file = dict(zip([*labelled, *unlabelled], layouts, strict=True))
    return [of_file[file] for file in files]


def _unlabelled(
    files: Sequence[SourceFile], tried: Sequence[Inspection | InputError], without: ReadOptions
) -> list[SourceFile]:
    """Return the files that can be read without labels only.

    Args:
      files: the files.
      tried: the result of `compare_files` for reading them with labels.
      without: the options for reading them without labels.
    """
    alone = compare_files(files, inspect_files(files, without), without)
    return [
        file
        for file, labelled, unlabelled in zip(files, tried, alone, strict=True)
        if isinstance(labelled, MissingColumnsError | UnknownFormatError)
        and isinstance(unlabelled, Inspection)
    ]


def _texts_at(piece: Piece, positions: set[int], pool: ThreadPoolExecutor) -> Iterator[list[bytes]]:
    """Yield the texts of lines whose labels cannot be read.

    Args:
      piece: a piece of a file.
      positions: the positions of the lines in the piece.
      pool: the threads that decompress.
    """
    without_labels = piece._replace(layout=replace(piece.layout, reads_labels=False))
    for batch in read_batches(without_labels, pool):
        pairs = zip(batch.positions, batch.texts, strict=True)
        yield [text for position, text in pairs if position in positions]


def _of_model(layout: Layout, options: ReadOptions, classes: Labels) -> Layout:
    """Return a layout with the class of each label, or with one that collects the labels.

    A training finds the classes of these tasks in its files. Here they are those of the model. If
    each label is a class, the files may have classes that the model does not know.
    """
    if not layout.reads_labels or options.task not in (STARS_TASK, EACH_TASK):
        return layout
    if options.task == EACH_TASK:
        return replace(layout, collected=CollectedLabels())
    names = tuple(name.lower() for name in classes.names)
    return replace(layout, label_map={name: label for label, name in enumerate(names)})


class _Draw:
    """A uniform random sample of a stream, the same each time. Its size bounds the memory.

    Args:
      most: the size of the sample.

    Attributes:
      total: the number of texts of the stream.
    """

    def __init__(self, most: int):
        self._most = most
        self._random = np.random.default_rng(0)
        self._kept: list[tuple[float, bytes, int]] = []
        self._limit = 1.0
        self.total = 0

    def add(self, texts: Sequence[bytes], labels: Sequence[int]) -> None:
        """Add the next texts of the stream with their labels."""
        self.total += len(texts)
        keys = self._random.random(len(texts))
        for n in np.flatnonzero(keys < self._limit).tolist():
            self._kept.append((float(keys[n]), texts[n], labels[n]))
        if len(self._kept) > 2 * self._most:
            self._cut()

    def drawn(self) -> tuple[list[bytes], np.ndarray]:
        """Return the texts of the sample in random order, and their labels."""
        self._cut()
        texts = [text for _, text, _ in self._kept]
        return texts, np.array([label for _, _, label in self._kept], np.int64)

    def _cut(self) -> None:
        self._kept = sorted(self._kept)[: self._most]
        if len(self._kept) == self._most:
            self._limit = self._kept[-1][0]
