"""Names of converted files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import PurePath

SUFFIX = re.compile(r"(\.(bz2|gz|zst|zstd|zip|tar|tgz))+$", re.IGNORECASE)
"""The suffixes of archives."""


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
        plain = SUFFIX.sub("", name)
        found[name] = name if plain == name else free_name(plain, taken)
        taken.add(found[name])
    return found


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name, with a number if it is taken.

    Args:
      name: the name.
      taken: the names of other files and folders.
    """
    stem, ending = os.path.splitext(name)
    free, number = name, 2
    while free in taken:
        free, number = f"{stem}-{number}{ending}", number + 1
    return free
