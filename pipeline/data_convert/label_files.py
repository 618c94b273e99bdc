"""Find files with a text on each line whose labels are the lines of another file.

So are ATIS and SNIPS (`seq.in`, `label`), TweetEval (`train_text.txt`, `train_labels.txt`) and many
sets with `sents.txt`, `sentiments.txt` and `topics.txt`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from core.errors import InputError
from pipeline.data_convert.text_folders import TABLE, is_text, read_lines
from preprocessing.reading.files import SourceFile

_LABELS = re.compile(
    r"(?<![a-z])(labels?|class(es)?|intents?|sentiments?|topics?|targets?|categor(y|ies))(?![a-z])",
    re.IGNORECASE,
)
"""The word for labels in the name of a file."""
_LEAST = 5
"""The minimum number of lines."""


class LabelledFile(NamedTuple):
    """A file with a text on each line, and the files whose lines are the labels of the texts.

    Attributes:
      parent: the path of their folder below that of the input; empty: the input.
      group: the group of the files.
      name: the name of the new file without its suffix.
      texts: the file of texts.
      labels: key of the labels in the new file -> their file.
    """

    parent: str
    group: str
    name: str
    texts: SourceFile
    labels: dict[str, SourceFile]

    @property
    def files(self) -> list[SourceFile]:
        """All files."""
        return [self.texts, *self.labels.values()]


def find_labelled_files(names: Sequence[tuple[SourceFile, str]]) -> list[LabelledFile]:
    """Return the files of texts whose labels are the lines of files beside them.

    A file of labels has a word such as `labels` in its name, repeats its lines, and has as many as
    the file of texts, in whose name another word may replace this one. Of several such files that
    with the most words has the texts: `seq.out` of ATIS has a tag for each word of `seq.in`.

    Args:
      names: the files, each with its path below the folder of the input.
    """
    folders: dict[tuple[str, str], list[SourceFile]] = {}
    for file, name in names:
        if not TABLE.fullmatch(os.path.basename(name)):
            folders.setdefault((os.path.dirname(name), file.group), []).append(file)
    found: dict[str, LabelledFile] = {}
    for (parent, group), files in folders.items():
        for labels in files:
            base = os.path.basename(labels.path)
            word = _LABELS.search(base)
            if word is None:
                continue
            start, end = base[: word.start()], base[word.end() :]
            texts = _texts_of(labels, [file for file in files if _is_beside(file, start, end)])
            if texts is None:
                continue
            stem = f"{start}{end}".removesuffix(".txt").strip("-_. ") or "texts"
            new = LabelledFile(parent, group, stem, texts, {})
            found.setdefault(texts.path, new).labels[os.path.splitext(base)[0]] = labels
    for path, one in found.items():
        if len(one.labels) == 1:
            found[path] = one._replace(labels={"label": next(iter(one.labels.values()))})
    return list(found.values())


def write_labelled(given: LabelledFile, target: str) -> None:
    """Write the texts as JSON lines with the keys of their labels and `text`.

    Args:
      given: the files.
      target: path of the new file.

    Raises:
      InputError: a file cannot be opened, or is damaged.
      OSError: a file cannot be read or written.
    """
    texts = read_lines(given.texts.path)
    columns = {key: read_lines(file.path) for key, file in given.labels.items()} | {"text": texts}
    with open(target, "w", encoding="utf-8") as file:
        for values in zip(*columns.values(), strict=True):
            record = dict(zip(columns, values, strict=True))
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _is_beside(file: SourceFile, start: str, end: str) -> bool:
    """Return whether a file has the name of a file of labels, with another word for this one."""
    base = os.path.basename(file.path)
    has_name = base.startswith(start) and base.endswith(end)
    return has_name and _LABELS.search(base) is None


def _texts_of(labels: SourceFile, files: Sequence[SourceFile]) -> SourceFile | None:
    """Return the one of some files that has the texts of a file of labels; None if none has."""
    try:
        lines = read_lines(labels.path) if files and is_text(labels.path) else []
        distinct = len(set(lines))
        if len(lines) < _LEAST or 2 * distinct > len(lines):
            return None
        words = {}
        for file in files:
            texts = read_lines(file.path) if is_text(file.path) else []
            if len(texts) == len(lines) and len(set(texts)) > distinct:
                words[file] = len({word for text in texts for word in text.split()})
    except InputError:
        return None  # the reader of a run names a file that is damaged or cannot be opened
    return max(words, key=words.__getitem__, default=None)
