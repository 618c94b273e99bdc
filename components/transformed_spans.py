"""The transformed files of spans, which a later window uses again.

A file of Examples is transformed alone, so the result depends on its content, on the graph and on
nothing else. A graph with analyzers depends on the whole train split, so its files are not kept.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tfx.dsl.io import fileio

from components.span_cache import Key, SpanCache
from core.files import stream_sha256
from examples.tfrecords import map_files
from preprocessing.reading.open_files import link_file


class TransformedFile(NamedTuple):
    """A transformed file, which is not published yet."""

    path: str
    examples: int
    """The number of its Examples."""
    classes: str | None
    """The path of the counts by class, or None if the classes were not counted."""

    def moved(self, folder: str) -> TransformedFile:
        """Return the file with the same names in another folder."""
        path, examples, classes = self
        new = os.path.join(folder, os.path.basename(classes)) if classes else None
        return TransformedFile(os.path.join(folder, os.path.basename(path)), examples, new)


class TransformedSpans:
    """The files of a window that are transformed already.

    Args:
      folder: the folder of the cache; empty: nothing is used again or kept.
      made_with: everything that decides the result beside the content of a file.
      spans: path of a file of Examples -> the number of its span.
      scratch: an existing folder for links to the kept files.
    """

    def __init__(
        self, folder: str, made_with: Sequence[str], spans: Mapping[str, int], scratch: str
    ):
        self._cache = SpanCache(folder or os.path.join(scratch, "spans"))
        self._made_with, self._spans, self._scratch = list(made_with), spans, scratch
        self._keys: dict[str, Key] = {}
        self._numbers = itertools.count()

    def find(self, files: Iterable[str], is_counted: bool) -> dict[str, TransformedFile]:
        """Return file of Examples -> its transformed file, for those that are kept.

        Args:
          files: the paths of files of Examples.
          is_counted: whether the classes of their Examples are counted.

        Raises:
          OSError, tensorflow.errors.OpError: a file cannot be read or linked.
        """
        files = list(files)
        keys = map_files(partial(self._key, is_counted=is_counted), files)
        values = self._cache.find_all(keys)
        self._keys.update(zip(files, keys, strict=True))
        return {
            file: self._linked(key, TransformedFile(*value))
            for file, key, value in zip(files, keys, values, strict=True)
            if value is not None
        }

    def store(self, file: str, transformed: TransformedFile) -> TransformedFile:
        """Keep a transformed file; return the one to publish.

        Args:
          file: the file of Examples, one of those of `find`.
          transformed: its transformed file.

        Raises:
          OSError, tensorflow.errors.OpError: a file cannot be moved or written.
        """
        key = self._keys[file]
        paths = [path for path in (transformed.path, transformed.classes) if path]
        self._cache.store(key, transformed.moved(""), paths)
        return self._linked(key, transformed)

    def remove_old(self) -> None:
        """Remove what no later run will use, see `SpanCache`."""
        # The newest span is the test split, which is not transformed.
        self._cache.remove_old(self._keys.values(), len(set(self._spans.values())) - 1)

    def _key(self, file: str, is_counted: bool) -> Key:
        with fileio.open(file, "rb") as stream:
            content = [self._made_with, is_counted, stream_sha256(stream)]
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        # A split without Examples has an empty file of no span.
        return Key(self._spans.get(file, max(self._spans.values())), digest)

    def _linked(self, key: Key, transformed: TransformedFile) -> TransformedFile:
        """Return a file of an entry under a new name in the scratch folder, to be published."""
        kept = transformed.moved(self._cache.folder(key))
        target = os.path.join(self._scratch, f"kept-{next(self._numbers):05d}.gz")
        link_file(kept.path, target)
        return kept._replace(path=target)
