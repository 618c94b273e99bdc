"""Find texts whose labels are the names of their folders or files.

Such are the IMDB reviews (`train/pos/0_9.txt`) and 20 newsgroups (`sci.med/58045`), with one text
in each file, and Cornell's sentence polarity (`rt-polarity.pos`), with one on each line.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from core.errors import InputError
from pipeline.data_convert.names import split_words
from preprocessing.reading import encoding
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.contents import find_kind
from preprocessing.reading.files import SourceFile
from preprocessing.reading.formats import fasttext
from preprocessing.reading.formats.jsonl import parse_object
from preprocessing.reading.labels import KNOWN_WORDS
from preprocessing.reading.open_files import open_bytes

_NAME = re.compile(r"(?!part-)[^.]*|.*\.(txt|text|\d+|[\da-f]{32}|msg|eml)", re.IGNORECASE)
"""Names of files with one text. Programs that process data in parts write `part-00000`. The mails
of SpamAssassin have a number and their digest, such as `0001.bfc8d64d12b325ff385cca8d07b84288`."""
_WORD = re.compile(r"[^\W_]+")
TABLE = re.compile(r".*\.(csv|tsv|json|jsonl|ndjson|parquet|xlsx?)(\.\w+)?", re.IGNORECASE)
"""Names of files with more than a text on each line."""
_MIN_FILES, _LARGEST = 5, 1 << 18
"""Minimum mean number of files of a label, and the maximum mean size of a text."""
_SAMPLE = 5
"""Number of files of each label whose content is inspected."""


class TextFolders(NamedTuple):
    """Folders with one text in each file, side by side, or such files with a text on each line.

    Attributes:
      parent: the path of the folder that contains them, below that of the input; empty: the input.
      group: the group of the files.
      labels: name of a folder, or word in the name of a file -> its files.
      name: the name of the new file without its suffix.
      by_line: whether each line is a text.
    """

    parent: str
    group: str
    labels: dict[str, list[SourceFile]]
    name: str = ""
    by_line: bool = False

    @property
    def files(self) -> list[SourceFile]:
        """All files."""
        return [file for files in self.labels.values() for file in files]


def find_text_folders(names: Sequence[tuple[SourceFile, str]]) -> list[TextFolders]:
    """Return the folders with one text in each file, and the files with the name of a label.

    Args:
      names: the files, each with its path below the folder of the input.

    Raises:
      InputError: a file cannot be opened.
    """
    found: dict[tuple[str, str], TextFolders] = {}
    for file, name in names:
        folder, base = os.path.split(name)
        if not folder or not _NAME.fullmatch(base):
            continue
        parent, label = os.path.split(folder)
        key = (parent, file.group)
        found.setdefault(key, TextFolders(parent, file.group, {})).labels.setdefault(
            label, []
        ).append(file)
    folders = [each for each in found.values() if _are_texts(each)]
    inside = {file.path for each in folders for file in each.files}
    return folders + _files_of_labels([one for one in names if one[0].path not in inside])


def _files_of_labels(names: Sequence[tuple[SourceFile, str]]) -> list[TextFolders]:
    """Return the files of lines whose names have the word of a sentiment, such as `pos.txt`."""
    found: dict[tuple[str, str, str], TextFolders] = {}
    for file, name in names:
        folder, base = os.path.split(name)
        words = [word for word in _WORD.findall(base) if word.lower() in KNOWN_WORDS]
        if len(words) != 1 or TABLE.fullmatch(base):
            continue
        rest = base.replace(words[0], "").removesuffix(".txt").strip("-_. ")
        key = (folder, rest, file.group)
        new = TextFolders(folder, file.group, {}, rest or "texts", by_line=True)
        found.setdefault(key, new).labels.setdefault(words[0].lower(), []).append(file)
    return [
        each
        for each in found.values()
        if len(each.labels) > 1 and all(is_text(file.path) for file in each.files)
    ]


def write_texts(folders: TextFolders, target: str, most: int) -> None:
    """Write the texts as JSON lines with the keys `label` and `text`.

    Args:
      folders: the folders.
      target: path of the new file.
      most: the maximum number of texts; of more, some of each label are written.

    Raises:
      InputError: a file cannot be opened, or is damaged.
      OSError: a file cannot be read or written.
    """
    step = max(1, -(-len(folders.files) // most))
    with open(target, "w", encoding="utf-8") as file:
        for label, text in _labelled(folders, step):
            file.write(json.dumps({"label": label, "text": text}, ensure_ascii=False) + "\n")


def _labelled(folders: TextFolders, step: int) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each text in every `step`-th file.

    Raises:
      InputError: a file cannot be opened, or is damaged.
    """
    for label, files in folders.labels.items():
        for source in files[::step]:
            if folders.by_line:
                texts = list(filter(str.strip, read_lines(source.path)))
            else:
                texts = [_read_text(source.path)]
            yield from ((label, text) for text in texts)


def read_lines(path: str) -> list[str]:
    """Return the lines of a file, without the empty ones at its end.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened, or is damaged.
    """
    # `splitlines` also ends a line at U+0085, U+2028 and a form feed.
    return re.split(r"\r?\n", _read_text(path).rstrip("\r\n"))


def _read_text(path: str) -> str:
    """Return the content of a file as text.

    Raises:
      InputError: the file cannot be opened, or is damaged.
    """
    with open_bytes(path) as stream:
        try:
            content = stream.read()
            stream.read(1)  # of a damaged archive the first call returns the content before
        except CorruptArchive as damage:
            raise InputError(f"{damage}: write or download it again") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        name = encoding.wide(content) or encoding.guess(content) or "WINDOWS-1252"
        return encoding.decoded(content, name)


def _are_texts(folders: TextFolders) -> bool:
    files, labels = folders.files, folders.labels
    if len(labels) < 2 or len(files) < _MIN_FILES * len(labels):
        return False
    if sum(file.size for file in files) > _LARGEST * len(files) or _are_splits(labels):
        return False
    sample: Iterable[SourceFile] = (one for each in labels.values() for one in each[:_SAMPLE])
    return all(is_text(file.path) for file in sample)


def _are_splits(labels: Mapping[str, Sequence[SourceFile]]) -> bool:
    """Return whether most files are splits that each folder has, such as `train_text.txt`.

    Args:
      labels: name of a folder -> its files.
    """
    names = [{os.path.basename(file.path) for file in files} for files in labels.values()]
    splits = [name for name in set.intersection(*names) if split_words(name)]
    return 2 * len(splits) * len(names) > sum(map(len, names))


def is_text(path: str) -> bool:
    """Return whether a file may be plain text: no document, archive, and no line of a record.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    try:
        with open_bytes(path) as stream:
            head = stream.read(1 << 12)
    except CorruptArchive:
        return False
    if find_kind(head) or b"\0" in head:
        return False
    first = next((line for line in head.split(b"\n") if line.strip()), b"")
    is_record = fasttext.LINE.fullmatch(first) or isinstance(parse_object(1, first), dict)
    return not is_record
