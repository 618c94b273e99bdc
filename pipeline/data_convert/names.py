"""Names of converted files, and words in the names of splits."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePath

from core.files import free_name

SUFFIX = re.compile(r"(\.(bz2|gz|zst|zstd|zip|tar|tgz))+$", re.IGNORECASE)
"""The suffixes of archives."""
SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "eval": "eval",
    "val": "eval",
    "valid": "eval",
    "validation": "eval",
    "dev": "eval",
}
"""Word in the name of a file, a folder or a key of a JSON document -> its split."""
_WORD = re.compile(r"[a-z]+")


def split_words(name: str) -> list[str]:
    """Return the words for splits in a name, such as `train` in `oos_train`; keys of SPLIT_WORDS.

    Args:
      name: the name of a file, a folder or a key.
    """
    return [word for word in _WORD.findall(name.lower()) if word in SPLIT_WORDS]


def new_names(names: Sequence[str]) -> dict[str, str]:
    """Return name -> its name without the suffixes of archives; no two are equal.

    They depend on the list of all files alone, so that a sample of the files has the same names.

    Args:
      names: the paths of all files, below the folder of the input.
    """
    taken = {"", *names}
    for name in names:
        taken.update(map(str, PurePath(name).parents))
    found = {}
    for name in sorted(names):
        found[name] = name
        plain = SUFFIX.sub("", name)
        if plain != name:
            found[name] = free_name(*os.path.splitext(plain), taken.__contains__)
        taken.add(found[name])
    return found
