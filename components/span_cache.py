"""A folder that keeps what a component has made of each span, for the windows of later runs.

The name of an entry contains a digest of everything that decides its content. An entry is complete
if it has its file `entry.json`, which is written last and by one rename; what a killed run left
behind is no entry. The size and the SHA-256 of each local file are compared before it is used.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from absl import logging
from tfx.dsl.io import fileio

from core.errors import storage_errors
from core.files import stream_sha256
from core.machine import cores
from core.storage import is_url

_FILE = "entry.json"
_NAME = re.compile(r"([0-9]+)-[0-9a-f]+")
_VALUE, _FILES = "value", "files"


class Key(NamedTuple):
    """The name of an entry."""

    span: int
    """The number of the span."""
    digest: str
    """A digest, in hexadecimal digits, of everything that decides the content."""

    def __str__(self) -> str:
        return f"{self.span:010d}-{self.digest}"


class SpanCache:
    """The entries of a component.

    Args:
      folder: the folder of all entries, local or remote. It need not exist.
    """

    def __init__(self, folder: str):
        self._folder = folder

    def folder(self, key: Key) -> str:
        """Return the folder of the files of an entry."""
        return os.path.join(self._folder, str(key))

    def find(self, key: Key) -> Any:
        """Return the value of an entry, or None if there is no complete entry with this key.

        Args:
          key: the key.
        """
        folder = self.folder(key)
        try:
            with fileio.open(os.path.join(folder, _FILE)) as source:
                entry = json.loads(source.read())
            files = entry[_FILES].items()
            if all(_stamp(os.path.join(folder, name)) == stamp for name, stamp in files):
                return entry[_VALUE]
        except (*storage_errors(), ValueError, KeyError):  # type: ignore[misc]
            return None
        logging.warning("%s is damaged, so it is made again", folder)
        return None

    def find_all(self, keys: Sequence[Key]) -> list[Any]:
        """Return the result of `find` for each key.

        The content of all files is compared, which several threads do in less time.

        Args:
          keys: the keys.
        """
        with ThreadPoolExecutor(cores()) as pool:
            return list(pool.map(self.find, keys))

    def store(self, key: Key, value: Any, paths: Sequence[str] = ()) -> None:
        """Move files into an entry, and complete it.

        Args:
          key: the key.
          value: what `find` returns. JSON can represent it.
          paths: files, whose names differ from those of all other files in entries.

        Raises:
          OSError, tensorflow.errors.OpError: a file cannot be moved or written.
        """
        folder = self.folder(key)
        fileio.makedirs(folder)
        stamps = {}
        for path in paths:
            name = os.path.basename(path)
            fileio.rename(path, os.path.join(folder, name), overwrite=True)
            stamps[name] = _stamp(os.path.join(folder, name))
        file = os.path.join(folder, _FILE)
        with fileio.open(f"{file}.part", "w") as target:
            target.write(json.dumps({_VALUE: value, _FILES: stamps}))
        fileio.rename(f"{file}.part", file, overwrite=True)

    def remove_old(self, used: Collection[Key], window: int) -> None:
        """Remove the entries that no run of the newest windows can use.

        The entries of the spans in this window that are not used are of another content or code.
        Those of other spans are kept if they are in a window that ends at the newest span of all
        entries, so a run of earlier spans does not remove those of the next day.

        Args:
          used: the keys of the entries that this run has used.
          window: the number of spans of a window.
        """
        with contextlib.suppress(*storage_errors()):
            found = [name.rstrip("/") for name in fileio.listdir(self._folder)]
            numbers = {name: int(match[1]) for name in found if (match := _NAME.fullmatch(name))}
            if not numbers:
                return
            first = max(numbers.values()) - window + 1
            kept, spans = set(map(str, used)), {key.span for key in used}
            for name, span in numbers.items():
                if name not in kept and (span in spans or span < first):
                    fileio.rmtree(os.path.join(self._folder, name))


def _stamp(path: str) -> list[Any]:
    """Return the size and the SHA-256 of a file; of a remote one, which is not read, the size.

    Raises:
      OSError, tensorflow.errors.OpError: the file cannot be read.
    """
    if is_url(path):
        import tensorflow as tf

        return [int(tf.io.gfile.stat(path).length)]
    with open(path, "rb") as stream:
        return [os.path.getsize(path), stream_sha256(stream)]
