"""What is in a folder, local or remote, for folders and files whose names are patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence

from core.errors import InputError
from core.storage import is_url
from preprocessing.reading.files import report_unlisted


def list_below(
    base: str, depth: int, may_contain: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[str, ...]]:
    """Yield the names of each path that is `depth` names below a folder, whatever is there.

    Args:
      base: folder or gs:// prefix.
      depth: the number of names, at least 1.
      may_contain: returns whether some names below `base`, at most `depth`, are of interest.

    Raises:
      InputError: the folder is missing; or the folder or prefix, or a subfolder of interest,
        cannot be listed.
    """
    if not is_url(base) and not os.path.exists(base):
        raise InputError(
            f"data.input_base: {base} does not exist; set the folder that contains the spans"
        )
    with report_unlisted(base, "data.input_base: "):
        yield from (_remote_names if is_url(base) else _local_names)(base, depth, may_contain)


def _local_names(
    base: str, depth: int, may_contain: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[str, ...]]:
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        above = waiting.pop()
        folder = os.path.join(base, *above)
        for name in os.listdir(folder):
            names = (*above, name)
            if not may_contain(names):
                continue
            if len(names) == depth:
                yield names
            elif os.path.isdir(os.path.join(folder, name)):
                waiting.append(names)


def _remote_names(
    base: str, depth: int, may_contain: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[str, ...]]:
    from apache_beam.io.filesystems import FileSystems

    prefix = base.rstrip("/") + "/"
    [result] = FileSystems.match([glob.escape(prefix) + "**"])
    parts = (found.path.removeprefix(prefix).split("/") for found in result.metadata_list)
    names = {tuple(each[:depth]) for each in parts}
    yield from (each for each in names if len(each) == depth and each[-1] and may_contain(each))
