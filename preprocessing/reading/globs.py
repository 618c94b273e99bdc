"""Match globs against the paths of files, and recognise the names of files that are not data."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

EVERYTHING = "**"
"""The glob of all files of a folder and its subfolders."""
_ANY_NAME = ("*", EVERYTHING)
# Folders and files that are not data, in a folder that was downloaded, or that Spark or Beam wrote,
# or beside the data on a file server: thumbnails, and files that were deleted.
_HIDDEN_FOLDER = re.compile(
    r"[._].*|lost\+found|@eadir|#recycle|\$recycle\.bin|system volume information", re.IGNORECASE
)
# `license_keys.csv` and `changelog.csv` are data.
_DOCUMENT = re.compile(
    r"(?!.*\.(csv|tsv|jsonl?|ndjson|parquet)(\.(bz2|gz|zst))?$)"
    r"(readme|license|licence|changelog|citation)([._-].*)?|.*\.(md|rst)",
    re.IGNORECASE,
)
# Earlier versions that editors and other programs keep, and files that are not written completely.
_BACKUP = re.compile(r".*~|#.*#|.*\.(bak|crdownload|orig|swp|tmp)(\.(bz2|gz|zst))?", re.IGNORECASE)
_OF_PROGRAMS = re.compile(
    r"[._].*|~\$.*|thumbs\.db|desktop\.ini|.*_\$folder\$|.*\.(crc|md5|sha1|sha256|sha512|dvc)",
    re.IGNORECASE,
)
_HIDDEN_DATA = re.compile(
    r"_.*\.(csv|tsv|jsonl?|ndjson|parquet|txt)(\.(bz2|gz|zst))?", re.IGNORECASE
)
_ANOTHER_NAME = "\0" * 16
"""A name that no file has, and that only globs of nearly any name match."""


def is_data_folder(relative: str) -> bool:
    """Return whether the files in a folder may be data.

    Args:
      relative: the path relative to the input folder, with `/` as separator.
    """
    return not any(_HIDDEN_FOLDER.fullmatch(part) for part in relative.split("/") if part)


def leaves_out(relative: str, glob: str) -> bool:
    """Return whether a file does not match a glob because its name is that of a document.

    Hidden files with the suffix of data count as documents, and so do backups. Files that programs
    write, such as checksums, do not.

    Args:
      relative: the path, with `/` as separator.
      glob: see `matches`.
    """
    folder, slash, name = relative.rpartition("/")
    is_document = bool(_DOCUMENT.fullmatch(name) or _BACKUP.fullmatch(name))
    is_named = is_document and not _OF_PROGRAMS.fullmatch(name)
    if not (is_named or _HIDDEN_DATA.fullmatch(name)):
        return False
    is_matched = matches(f"{folder}{slash}{_ANOTHER_NAME}", glob)
    return is_matched and not matches(relative, glob)


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
    same character, and so does `~$`, with which Office locks a file. The names `*` and `**` match
    no hidden file or folder, document, checksum or backup.

    Args:
      relative: the path, with `/` as separator.
      glob: a glob without empty names, see `normal`.
    """
    return _match(relative.split("/"), glob.split("/"))


def first_exact(
    candidates: Iterable[str], names: Collection[str], others: Collection[str]
) -> str | None:
    """Return the first glob that matches all of some files and no others; None without one.

    Args:
      candidates: the globs.
      names: the relative paths of the files, with `/` as separator.
      others: the relative paths of other files.
    """
    wanted, every = set(names), {*names, *others}
    for glob in candidates:
        if {name for name in every if matches(name, glob)} == wanted:
            return glob
    return None


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
        is_file = len(names) == 1
        return _matches_name(names[0], parts[0], is_file) and _match(names[1:], parts[1:])
    if parts == [EVERYTHING]:
        return _is_data_file(names[-1]) and all(map(is_data_folder, names[:-1]))
    if _match(names, parts[1:]):
        return True
    return len(names) > 1 and is_data_folder(names[0]) and _match(names[1:], parts)


def _is_beginning(names: list[str], parts: list[str]) -> bool:
    """Return whether the names of a folder are the beginning of a path that may match."""
    if not (names and parts):
        return bool(parts)
    if parts[0] != EVERYTHING:
        is_match = _matches_name(names[0], parts[0], is_file=False)
        return is_match and _is_beginning(names[1:], parts[1:])
    if is_data_folder(names[0]) and _is_beginning(names[1:], parts):
        return True
    return len(parts) > 1 and _is_beginning(names, parts[1:])


def _is_data_file(name: str) -> bool:
    return not any(of.fullmatch(name) for of in (_OF_PROGRAMS, _DOCUMENT, _BACKUP))


def _matches_name(name: str, part: str, is_file: bool) -> bool:
    if part in _ANY_NAME:
        return _is_data_file(name) if is_file else is_data_folder(name)
    # A glob that begins with a slash has an empty first name.
    hidden = name.startswith((".", "_", "~$")) and not part.startswith(name[0])
    return not hidden and fnmatchcase(name, part)
