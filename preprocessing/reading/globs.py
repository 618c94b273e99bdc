"""Match globs against the paths of files, and recognise the names of files that are not data."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

EVERYTHING = "**"
"""The glob of all files of a folder and its subfolders."""
# Files and folders beside the data in a folder that was downloaded, or that Spark or Beam wrote.
_NOT_DATA = re.compile(
    r"[._].*|lost\+found|(readme|license|licence|changelog|citation)([._-].*)?"
    r"|.*\.(md|rst|crc|md5|sha256)",
    re.IGNORECASE,
)


def is_data(relative: str) -> bool:
    """Return whether a file or folder counts as data, by its path relative to the input folder."""
    return not any(_NOT_DATA.fullmatch(part) for part in relative.split("/") if part)


def literal_prefix(glob: str) -> str:
    """Return the part of a glob before its first special character."""
    return re.split(r"[*?\[]", glob, maxsplit=1)[0]


def matches(relative: str, glob: str) -> bool:
    """Return whether a relative path with `/` in it matches a glob.

    The names of the path are matched one by one, see `fnmatch`. A name `**` in the glob matches any
    number of folders, including none, and at the end of the glob every file below them.
    """
    return _match(relative.split("/"), glob.split("/"))


def may_contain(folder: str, glob: str) -> bool:
    """Return whether a folder, a relative path, may contain files that match a glob."""
    parts = glob.partition("**")[0].split("/")[:-1]
    names = folder.split("/")
    return ("**" in glob or len(names) <= len(parts)) and all(map(fnmatchcase, names, parts))


def _match(names: list[str], parts: list[str]) -> bool:
    if not (names and parts):
        return not (names or parts)
    if parts[0] == "**":
        return parts == ["**"] or _match(names, parts[1:]) or _match(names[1:], parts)
    return fnmatchcase(names[0], parts[0]) and _match(names[1:], parts[1:])
