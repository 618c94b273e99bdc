"""The versions in a serving folder, as the Pusher writes them and TensorFlow Serving reads them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

from core import storage
from core.errors import InputError

MODEL_FILE = "saved_model.pb"
"""The file of a model that the Pusher copies last, so a folder without it is no version."""
VARIABLES_INDEX = "variables/variables.index"
"""The file of a model with the names, offsets and checksums of its weights."""
_END = 1 << 63
"""The limit of a version's number. TensorFlow Serving ignores a number that exceeds an int64."""
_FIRST_PUSH = 1_420_070_400
"""The beginning of 2015 in seconds since 1970. TensorFlow is younger."""
_DAY = 86_400
"""The clocks of two machines differ by less than these seconds."""
_SHARD = re.compile(r"variables\.data-(\d+)-of-(\d+)")


class NoModelError(InputError):
    """A serving folder without a pushed model. The message names the folder and the remedy."""

    def __init__(self, serving: str):
        super().__init__(
            f"no model has been pushed to {serving} yet; `amazon-reviews run` with the same "
            "settings pushes one. If the models are in another folder, pass the --config of their "
            "runs, or set paths.serving"
        )


def versions(folder: str) -> Iterator[str]:
    """Yield the paths of the versions under `folder`, newest first.

    A version is a folder whose name is a number; the highest number is the newest version. Other
    names are skipped, and so are folders without the model file, which a push has not completed. A
    version that was damaged after its push may lack other files, see `complete_versions`.

    Args:
      folder: a local folder or a URL of a file system that TensorFlow reads, such as gs://. A
        missing folder has no versions.

    Raises:
      InputError: the folder is itself a version.
      OSError: the folder cannot be listed, or a version cannot be read.
    """
    if MODEL_FILE in _names(folder):
        raise InputError(
            f"paths.serving: {folder} is itself a model; set paths.serving to the folder that "
            f"contains it, {os.path.dirname(folder.rstrip('/'))}"
        )
    for name in sorted(_numbers(folder), key=int, reverse=True):
        path = f"{folder.rstrip('/')}/{name}"
        if MODEL_FILE in _names(path):
            yield path


def complete_versions(folder: str) -> Iterator[str]:
    """Yield the paths of the `versions` whose files are all present, newest first.

    Args:
      folder: see `versions`.

    Raises:
      InputError: the folder is itself a version.
      OSError: the folder cannot be listed, or a version cannot be read.
    """
    return (path for path in versions(folder) if is_complete(path))


def newest_complete(folder: str) -> str:
    """Return the path of the newest complete version.

    Args:
      folder: see `versions`.

    Raises:
      NoModelError: there is no version.
      InputError: there are only incomplete versions, or the folder is itself a version.
      OSError: the folder cannot be listed, or a version cannot be read.
    """
    newest = next(complete_versions(folder), None)
    if newest is not None:
        return newest
    damaged = next(versions(folder), None)
    if damaged is None:
        raise NoModelError(folder)
    raise InputError(
        f"no version in {folder} is complete; in the newest one {missing_part(damaged)}; "
        "`amazon-reviews run` trains and pushes another"
    )


def next_version(folder: str) -> int:
    """Return the number for a new version, which is greater than that of every other version.

    The number is the seconds since 1970, unless the newest version has this or a greater number.
    Incomplete versions count, because TensorFlow Serving may load them later.

    Args:
      folder: see `versions`.

    Raises:
      InputError: the newest version has the greatest possible number.
      OSError: the folder cannot be listed.
    """
    newest = max(map(int, _numbers(folder)), default=0)
    if newest + 1 >= _END:
        raise InputError(
            f"{folder}/{newest} has the greatest number of a version, so nothing can be pushed "
            "after it; rename or delete this folder"
        )
    return max(int(time.time()), newest + 1)


def push_time(version: int) -> int | None:
    """Return the time of the push of a version, in seconds since 1970; None if it is unknown.

    The numbers of other programs are no times, such as 1, 2, 3 or milliseconds. Neither are those
    of the versions that are pushed after them.

    Args:
      version: the number of the version, see `next_version`.
    """
    return version if _FIRST_PUSH <= version <= time.time() + _DAY else None


def is_complete(model: str) -> bool:
    """Return whether a folder contains all files of a SavedModel.

    The content of the files is not read: a model may be complete and damaged.

    Args:
      model: path or URL of the folder.

    Raises:
      OSError: the folder cannot be read.
    """
    return not missing_part(model)


def missing_part(model: str) -> str:
    """Return a clause with the missing part of a SavedModel; empty if the model is complete.

    Args:
      model: path or URL of its folder.

    Raises:
      OSError: the folder cannot be read.
    """
    for name in (MODEL_FILE, VARIABLES_INDEX):
        folder, file = os.path.split(name)
        names = _names(os.path.join(model, folder) if folder else model)
        if folder and not names:
            return f"{folder}/ is missing"
        if file not in names:
            return f"{name} is missing"
        if not storage.size(os.path.join(model, name)):
            return f"{name} is empty"
    # The names of the files with the weights contain their number.
    shards = [found for found in map(_SHARD.fullmatch, names) if found]
    expected = max((int(found[2]) for found in shards), default=1)
    if len({found[1] for found in shards}) < expected:
        return f"{len(shards)} of {expected} files variables.data-… exist"
    return ""


def _numbers(folder: str) -> list[str]:
    return [
        each for each in storage.names(folder) if re.fullmatch("[0-9]+", each) and int(each) < _END
    ]


def _names(folder: str) -> list[str]:
    """Return the names in a folder; an empty list if it is missing or a file."""
    try:
        return storage.names(folder)
    except NotADirectoryError:
        return []
