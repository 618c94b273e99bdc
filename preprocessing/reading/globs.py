"""Match globs against the paths of files, and recognise the names of files that are not data."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

EVERYTHING = "**"
"""The glob of all files of a folder and its subfolders."""
_ANY_NAME = ("*", EVERYTHING)
# Files and folders that are not data, in a folder that was downloaded, or that Spark or Beam wrote.
_NOT_DATA = re.compile(
    r"[._].*|lost\+found|(readme|license|licence|changelog|citation)([._-].*)?"
    r"|thumbs\.db|desktop\.ini|.*_\$folder\$|.*\.(md|rst|crc|md5|sha1|sha256|sha512|dvc)",
    re.IGNORECASE,
)


def is_data(relative: str) -> bool:
    """Return whether a file or folder counts as data.

    Args:
      relative: the path relative to the input folder, with `/` as separator.
    """
    return not any(_NOT_DATA.fullmatch(part) for part in relative.split("/") if part)


def literal_prefix(glob: str) -> str:
    """Return the part of a glob before its first special character."""
    return re.split(r"[*?\[]", glob, maxsplit=1)[0]


def is_literal(glob: str) -> bool:
    """Return whether a glob has no special character, and therefore is the path of one file."""
    return literal_prefix(glob) == glob


def matches(relative: str, glob: str) -> bool:
    """Return whether a relative path matches a glob.

    The names of the path are matched one by one, see `fnmatch`. A name `**` in the glob matches any
    number of folders, including none, and at the end of the glob every file below them. As in a
    shell, a name that begins with `.` or `_` matches only a name in the glob that begins with the
    same character. The names `*` and `**` match no file or folder that `is_data` excludes.

    Args:
      relative: the path, with `/` as separator.
      glob: a glob without empty names, see `normal`.
    """
    return _match(relative.split("/"), glob.split("/"))


def may_contain(folder: str, glob: str) -> bool:
    """Return whether a folder may contain files that match a glob.

    Args:
      folder: the relative path of the folder, with `/` as separator.
      glob: see `matches`.
    """
    return _is_beginning(folder.split("/"), glob.split("/"))


def normal(glob: str) -> str:
    """Return a glob without empty names and without `.`, such as `folder` for `./folder/`."""
    names = [name for name in glob.split("/") if name not in ("", ".")]
    return "/" * glob.startswith("/") + "/".join(names) or EVERYTHING


def inside(glob: str) -> str:
    """Return a glob that matches all files in the folders that a glob matches."""
    return f"{glob}/{EVERYTHING}"


def _match(names: list[str], parts: list[str]) -> bool:
    if not (names and parts):
        return not (names or parts)
    if parts[0] != EVERYTHING:
        return _matches_name(names[0], parts[0]) and _match(names[1:], parts[1:])
    if parts == [EVERYTHING]:
        return all(map(is_data, names))
    return _match(names, parts[1:]) or (is_data(names[0]) and _match(names[1:], parts))


def _is_beginning(names: list[str], parts: list[str]) -> bool:
    """Return whether the names of a folder are the beginning of a path that may match."""
    if not (names and parts):
        return bool(parts)
    if parts[0] != EVERYTHING:
        return _matches_name(names[0], parts[0]) and _is_beginning(names[1:], parts[1:])
    if is_data(names[0]) and _is_beginning(names[1:], parts):
        return True
    return len(parts) > 1 and _is_beginning(names, parts[1:])


def _matches_name(name: str, part: str) -> bool:
    if part in _ANY_NAME:
        return is_data(name)
    # A glob that begins with a slash has an empty first name.
    hidden = name.startswith((".", "_")) and not part.startswith(name[0])
    return not hidden and fnmatchcase(name, part)
