"""Propose `data.splits`: for files with the names of splits, and to leave out other files."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from components.line_counts import SPLITS
from pipeline.data_check.found import Choice, Problem
from pipeline.data_check.settings_file import data_yaml
from pipeline.data_convert.names import SPLIT_WORDS, split_words
from preprocessing.reading import globs
from preprocessing.reading.files import SourceFile


def propose_splits(good: Sequence[str], others: Collection[str]) -> dict[str, str]:
    """Return a glob for each split; empty if the names are not those of train and another split.

    Args:
      good: the paths of the files that can be read, below the folder.
      others: the paths of the other files, which no glob may match.
    """
    groups: dict[str, set[str]] = {}
    for name in good:
        words = {SPLIT_WORDS[word]: word for word in split_words(name)}
        if len(words) != 1:
            return {}
        groups.setdefault(next(iter(words)), set()).add(name)
    if "train" not in groups or len(groups) < 2:
        return {}
    found = {}
    for split, names in groups.items():
        outside = {*good, *others} - names
        glob = globs.first_exact(_globs(sorted(names)), names, outside)
        if glob is None:
            return {}
        found[split] = glob
    return {split: found[split] for split in SPLITS if split in found}


def exact_glob(good: Sequence[str], others: Collection[str]) -> dict[str, str]:
    """Return `data.splits` with a glob that matches the good files alone; empty without one.

    Args:
      good: the paths of the files that can be read, below the folder.
      others: the paths of the other files, which the glob does not match.
    """
    suffixes = Counter(os.path.basename(name).partition(".")[2] for name in good)
    folders = {os.path.dirname(name) for name in good}
    candidates = [f"**/*.{suffix}" for suffix in suffixes if suffix]
    candidates += [f"{folder}/**" for folder in folders if folder]
    glob = globs.first_exact([*candidates, *good[:1]], good, others)
    return {"train": glob} if glob else {}


def in_splits(
    files: Sequence[SourceFile], names: Mapping[str, str], splits: Mapping[str, str]
) -> list[SourceFile]:
    """Return the files with the splits whose globs they match.

    Args:
      files: the files.
      names: path of a file -> its path below the folder.
      splits: the result of `propose_splits`.
    """
    return [
        file._replace(group=split)
        for split, glob in splits.items()
        for file in files
        if globs.matches(names[file.path], glob)
    ]


def split_note(splits: dict[str, str]) -> Problem:
    """Return the question whether the files of splits are these splits.

    Args:
      splits: the result of `propose_splits`, not empty.
    """
    settings = data_yaml({"splits": splits})
    choices = (
        Choice(settings, f"held out: {', '.join(name for name in splits if name != 'train')}"),
        Choice(data_yaml({"splits": {}}), "all files are split by a hash of the texts"),
    )
    return Problem(
        f"the names of the files are those of splits: {', '.join(splits)}",
        settings,
        choices=choices,
        is_blocking=False,
    )


def _globs(names: Sequence[str]) -> Iterator[str]:
    """Yield globs that may match these files alone, the most specific one first."""
    if len(names) == 1:
        yield names[0]
    folder = os.path.commonpath([os.path.dirname(name) for name in names])
    prefix = f"{folder}/" if folder else ""
    inside = [name.removeprefix(prefix) for name in names]
    # The first and the last of sorted names differ where any two of them do.
    pairs = itertools.takewhile(
        lambda pair: pair[0] == pair[1], zip(inside[0], inside[-1], strict=False)
    )
    start = "".join(char for char, _ in pairs)
    if start and "/" not in start:
        yield f"{prefix}{start}*"
    if folder:
        yield f"{folder}/**"
    for word in SPLIT_WORDS:
        yield f"**/*{word}*"
        yield f"**/*{word}*/**"
