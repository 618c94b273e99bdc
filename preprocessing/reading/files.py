"""Find and identify review files, local or gs://.

`find_sources` lists the files of an input, group by group. `fingerprint` is the only key of their
content, both for the cache and for the detection of an unchanged input. Only remote files are read
by Beam's FileSystems, because their import takes seconds.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from core.errors import InputError
from core.files import stream_sha256
from core.storage import is_bucket, is_url
from preprocessing.reading import globs, tables
from preprocessing.reading.listing import joined
from preprocessing.reading.open_files import open_raw
from preprocessing.reading.span_pattern import placeholder_hint

HELD_OUT = {"eval": 1, "test": 2}
"""Held-out split -> priority. A text in the files of several splits belongs to the split with the
highest priority."""

ALL = "all"
"""The group of all files of an input whose settings name no split."""
FILES_AT_ONCE = 16
"""Files that are opened at the same time. Opening a remote file takes tens of milliseconds."""
_ANNEX = "/.git/annex/objects/"
"""A part of the targets of the links that git-annex has in place of files."""
_FOLDER_OBJECTS = ("/", "_$folder$")
"""The suffixes of the names of empty objects that represent folders in a bucket."""

_SHOWN = 4
"""Maximum number of names in a message."""


class NoFilesError(InputError):
    """A folder or prefix that has no file of an input.

    Attributes:
      problem: the message without the remedy.
      hints: clauses about files that may be meant, each after a semicolon; empty if there is none.
    """

    def __init__(self, problem: str, remedy: str, hints: str):
        super().__init__(f"{problem}: {remedy}{hints}")
        self.problem = problem
        self.hints = hints


class SourceFile(NamedTuple):
    """A file of an input, as its file system lists it."""

    path: str  # local or gs://
    size: int  # in bytes, as it is stored
    modified: float = 0  # in seconds since 1970; 0: unknown, or a local file
    group: str = ALL  # `train`, `eval`, `test` or ALL
    span: str = ""  # the name of its span in a window of several spans


def find_sources(base: str, patterns: Mapping[str, str]) -> list[SourceFile]:
    """Find the files of an input, ordered by group and path.

    A file that matches the globs of several groups belongs to the one with the highest priority.

    Args:
      base: folder or gs:// prefix.
      patterns: group -> glob below `base`, see `match_files`.

    Raises:
      NoFilesError: a group has no file.
      InputError: the folder is missing, cannot be listed or belongs to a table.
    """
    found = {}
    for group in sorted(patterns, key=lambda group: HELD_OUT.get(group, 0)):
        for file in find_files(base, patterns[group]):
            found[file.path] = file._replace(group=group)
    groups = [file.group for file in found.values()]
    for group, pattern in patterns.items():
        if group not in groups:
            raise InputError(
                f"data.splits.{group}: every file that '{pattern}' matches belongs to another split"
            )
    order = list(patterns)
    return sorted(found.values(), key=lambda file: (order.index(file.group), file.path))


def fingerprint(base: str, sources: Sequence[SourceFile]) -> str:
    """Return a digest of the groups, relative paths, sizes and contents of files.

    The content of a local file is its SHA-256. Size and times do not identify it: `cp -p`, `rsync
    -t` and `tar` set the time of modification, the time of change differs between copies, and
    network file systems emulate it. In a bucket the time identifies the content: the server sets it
    whenever an object is written. docs/explanation/components.md has the cost.

    Args:
      base: the folder or prefix of the input, to which the paths in the digest are relative.
      sources: the files.

    Raises:
      InputError: a file cannot be read.
    """
    digest = hashlib.sha256()
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        for file, content in zip(sources, pool.map(_content_key, sources), strict=True):
            stored = [file.group, relative_path(base, file.path), file.size, content]
            digest.update(json.dumps(stored).encode() + b"\n")
    total = sum(file.size for file in sources)
    return f"num_files:{len(sources)},total_bytes:{total},sha256:{digest.hexdigest()}"


def select_same_paths(before: Sequence[SourceFile], now: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the files of a later listing whose paths an earlier listing contains too.

    Args:
      before: the earlier listing.
      now: the later listing.
    """
    paths = {file.path for file in before}
    return [file for file in now if file.path in paths]


def _content_key(file: SourceFile) -> str | float:
    """Return a value that identifies the content of a file, see `fingerprint`."""
    if file.modified:
        return file.modified
    with open_raw(file.path) as stream:
        return stream_sha256(stream)


@contextlib.contextmanager
def report_unlisted(base: str, setting: str = "") -> Iterator[None]:
    """Raise an error for a user if the context fails because a folder or prefix cannot be listed.

    Args:
      base: the folder or prefix.
      setting: the beginning of the message.

    Raises:
      InputError: the context failed. An InputError of the context passes through.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # every cloud client has exceptions of its own
        raise InputError(f"{setting}{_cannot_be_listed(base, error)}") from error


def _cannot_be_listed(base: str, error: Exception) -> str:
    """Return the message for a folder or prefix that cannot be listed.

    Args:
      base: the folder or prefix.
      error: the error of the file system or of the cloud client.
    """
    if is_url(base) and not is_bucket(base):
        # Beam's file systems for other URLs, such as s3://, require options that a run lacks.
        return (
            f"{base} cannot be listed: it must be the path of a local folder or a gs:// prefix; "
            "set one, and copy the files to it if necessary"
        )
    inner = _innermost(error)
    # The text of an error of the file system would have its number, and the path again.
    reason = inner.strerror if isinstance(inner, OSError) and inner.strerror else inner
    return (
        f"{base} cannot be listed: {reason}; it must be a folder or a gs:// prefix that this user "
        "or service account may read"
    )


def _innermost(error: Exception) -> Exception:
    """Return the error of a cloud client inside of the errors of Beam, which have one per path."""
    details = getattr(error, "exception_details", None)
    inner = next(iter(details.values()), None) if isinstance(details, dict) else None
    return _innermost(inner) if isinstance(inner, Exception) else error


def find_files(base: str, pattern: str) -> list[SourceFile]:
    """Return the files under `base` that match `pattern`, at least one, sorted.

    Args:
      base: folder or gs:// prefix.
      pattern: see `match_files`.

    Raises:
      NoFilesError: no file matches.
      InputError: `base` or `pattern` is empty, or the folder is missing; also for the reasons in
        `match_files`.
    """
    if not base.strip() or not pattern.strip():
        raise InputError("data.input_base and the glob of a split must not be empty")
    if not is_url(base) and not os.path.isdir(base):
        path = base.rstrip("/")
        _refuse_lost_link(path)
        if os.path.exists(path):
            raise InputError(
                f"{path} is a file: data.input_base must be its folder, and data.splits can name "
                f"the file; `amazon-reviews data check {shlex.quote(path)}` prints both settings"
            )
        raise InputError(
            f"{base} does not exist: data.input_base must be a folder or a gs:// prefix with files "
            f"of texts, and data.splits can name the files in it{placeholder_hint(base)}"
            f"{_fetch_hint(pattern)}"
        )
    found = match_files(base, pattern)
    if not found:
        _refuse_remote_file(base.rstrip("/"))
        raise NoFilesError(
            f"{base} and its subfolders contain no file of texts that matches '{pattern}'",
            "set data.input_base to another folder, or data.splits to folders or globs relative to "
            "it (* and ** match no hidden files, READMEs, licences, checksums and backups, and a "
            "name that begins with . or _ only matches a glob that begins so)",
            f"{_name_hint(base, pattern)}{_glob_hint(base, pattern)}{_fetch_hint(pattern)}",
        )
    return found


def find_file(path: str) -> SourceFile | None:
    """Return the file at a path; None if the path is that of a folder or a prefix.

    Args:
      path: the path, local or remote.

    Raises:
      InputError: a remote path cannot be listed.
    """
    if not is_url(path):
        return SourceFile(path, os.path.getsize(path)) if os.path.isfile(path) else None
    from apache_beam.io.filesystems import FileSystems

    with report_unlisted(path):
        [result] = FileSystems.match([glob.escape(path)])
    return next(map(source_of, result.metadata_list), None)


def _name_hint(base: str, pattern: str) -> str:
    """Return a clause about the files that are not read because of their names.

    Raises:
      InputError: the folder or prefix, or a subfolder, cannot be listed.
    """
    names = [relative_path(base, path) for path in find_left_out(base, [pattern])]
    if not names:
        return ""
    shown = joined([shlex.quote(name) for name in names], _SHOWN)
    return f"; to read {shown}, rename {'it' if len(names) == 1 else 'them'}"


def _fetch_hint(pattern: str) -> str:
    """Return the end of the message about the files of Kaggle, which a command downloads."""
    if pattern.endswith(".ft.txt.bz2"):
        return "; `amazon-reviews data fetch` with the same settings downloads Kaggle's files"
    return ""


def _refuse_remote_file(path: str) -> None:
    """Refuse the URL of a file, below which a bucket has no files.

    Args:
      path: a local folder, or a URL without a slash at its end.

    Raises:
      InputError: the URL is that of a file, or it cannot be listed.
    """
    folder, _, name = path.rpartition("/")
    # The URL of a bucket has no name below it.
    if is_url(path) and is_url(folder) and find_file(path):
        quoted = json.dumps(glob.escape(name), ensure_ascii=False)
        raise InputError(
            f"{path} is a file: data.input_base must be its folder, and data.splits can name the "
            f"file; set data.input_base: {folder} and data.splits: {{train: {quoted}}}"
        )


def _glob_hint(base: str, pattern: str) -> str:
    """Return the end of the message about a glob with characters that mean something else."""
    is_literal = glob.escape(pattern) != pattern and not is_url(base)
    if is_literal and os.path.isfile(os.path.join(base, pattern)):
        return f"; to name the file itself, write '{glob.escape(pattern)}'"
    if "{" in pattern:
        return "; braces are no part of a glob, so write *, ? or [abc]"
    return ""


def relative_path(base: str, path: str) -> str:
    """Return the path of a file that `find_files` found, relative to its `base`."""
    return path.removeprefix(base.rstrip("/") + "/")


def match_files(base: str, pattern: str) -> list[SourceFile]:
    """Return the files under `base` that match `pattern`, sorted.

    If `pattern` matches only folders, the data files in these folders match. The files of a table
    are refused, see `tables`, except a file whose path is `pattern` itself, without special
    characters.

    Args:
      base: folder or prefix, in which the special characters of globs have no meaning.
      pattern: a glob relative to `base`, see `globs.matches`.

    Raises:
      InputError: the folder or prefix, or a subfolder that may contain matches, cannot be listed,
        or a match belongs to a table.
    """
    folder = base.rstrip("/") or "/"
    pattern = globs.normal(relative_path(folder, pattern))
    list_files = _remote_files if is_url(folder) else _local_files
    with report_unlisted(base):
        found, listed = list_files(folder, pattern)
        if not found:
            found, listed = list_files(folder, globs.inside(pattern))
    named = os.path.join(folder, pattern) if globs.is_literal(pattern) else None
    tables.refuse_tables((file.path for file in found if file.path != named), listed)
    return found


def find_left_out(base: str, patterns: Iterable[str]) -> list[str]:
    """Return the paths of the files that are no part of an input because of their names, sorted.

    See `globs.leaves_out`.

    Args:
      base: folder or gs:// prefix.
      patterns: the globs of the input below `base`, see `match_files`.

    Raises:
      InputError: the folder or prefix, or a subfolder, cannot be listed.
    """
    folder = base.rstrip("/") or "/"
    found: set[str] = set()
    matched: set[str] = set()
    for pattern in patterns:
        glob_of_files = globs.normal(relative_path(folder, pattern))
        with report_unlisted(base):
            listed = list(_relative_paths(folder, glob_of_files))
        here = {each for each in listed if globs.matches(each, glob_of_files)}
        if not here:
            glob_of_files = globs.inside(glob_of_files)
            here = {each for each in listed if globs.matches(each, glob_of_files)}
        matched |= here
        found.update(each for each in listed if globs.leaves_out(each, glob_of_files))
    return [os.path.join(folder, each) for each in sorted(found - matched)]


def _relative_paths(folder: str, pattern: str) -> Iterator[str]:
    """Yield the paths of the files in the folders that a glob, or `globs.inside` of it, reaches."""
    if is_url(folder):
        _, listed = _list_remote(folder, pattern)
        yield from (relative_path(folder, found.path) for found in listed)
    else:
        yield from (relative for relative, _ in _walk(folder, globs.inside(pattern)))


def _remote_files(folder: str, pattern: str) -> tuple[list[SourceFile], list[str]]:
    """Return the files that match, and the paths of all files that were listed."""
    from apache_beam.io.filesystems import FileSystems

    prefix, found_files = _list_remote(folder, pattern)
    files = list(map(source_of, found_files))
    matched = [file for file in files if globs.matches(relative_path(folder, file.path), pattern)]
    # The prefix omits the markers of a table whose folder contains it.
    outer = [each for each in tables.parents(f"{prefix}*") if f"{each}/".startswith(f"{folder}/")]
    markers = FileSystems.match([each for above in outer for each in tables.marker_globs(above)])
    listed = [found.path for each in markers for found in each.metadata_list]
    return sorted(matched), [*(file.path for file in files), *listed]


def _list_remote(folder: str, pattern: str) -> tuple[str, list[Any]]:
    """Return the part of a glob before its first special character, as a URL, and what is below it.

    Returns:
      The URL, and the `FileMetadata` of each file that begins with it.
    """
    from apache_beam.io.filesystems import FileSystems

    # Beam lists the files, and `globs` matches their names. In Beam's globs `**/` needs at least
    # one folder, and `?` matches a slash.
    prefix = FileSystems.join(folder, globs.literal_prefix(pattern))
    [result] = FileSystems.match([glob.escape(prefix) + "**"])
    # On gs:// a "folder" can be an empty object.
    listed = [each for each in result.metadata_list if not each.path.endswith(_FOLDER_OBJECTS)]
    return prefix, listed


def source_of(metadata: Any) -> SourceFile:
    """Return a remote file that Beam has listed.

    Args:
      metadata: the `FileMetadata` of the file.
    """
    changed = float(metadata.last_updated_in_seconds or 0)
    return SourceFile(metadata.path, int(metadata.size_in_bytes), changed)


def _local_files(folder: str, pattern: str) -> tuple[list[SourceFile], list[str]]:
    """Return the files that match, and the paths of the files that mark their folders as tables."""
    files = []
    for relative, entry in _walk(folder, pattern):
        if globs.matches(relative, pattern):
            path = os.path.join(folder, relative)
            _refuse_lost_link(path)
            files.append(SourceFile(path, entry.stat().st_size))
    files.sort()
    above = {each for file in files for each in tables.parents(file.path)}
    markers = [path for each in above for path in map(glob.glob, tables.marker_globs(each))]
    return files, [path for found in markers for path in found]


def _refuse_lost_link(path: str) -> None:
    """Check that a path is not a symbolic link without a target.

    Raises:
      InputError: the target is missing.
    """
    if not os.path.islink(path) or os.path.exists(path):
        return
    target = os.readlink(path)
    remedy = "restore the target, or remove the link"
    if _ANNEX in f"/{target}":
        remedy = "fetch the content with `git annex get .` in its folder"
    raise InputError(f"{path} is a symbolic link to {target}, which is missing: {remedy}")


def _walk(folder: str, pattern: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the relative path of each file in the folders that may contain files that match.

    Links to folders are followed, and each folder is listed once. Beam's listing omits files that
    cannot be read, and files in a linked folder.
    """
    waiting = [""] if os.path.isdir(folder) else []
    seen = set()
    while waiting:
        inside = waiting.pop()
        real = os.path.realpath(os.path.join(folder, inside))
        if real in seen:
            continue
        seen.add(real)
        for entry in os.scandir(os.path.join(folder, inside)):
            relative = inside + entry.name
            # A link to itself raises an error in `is_dir` of an entry.
            if os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir():
                if globs.may_contain(relative, pattern):
                    # All folders are listed before all links.
                    waiting.insert(0 if entry.is_symlink() else len(waiting), f"{relative}/")
            else:
                yield relative, entry
