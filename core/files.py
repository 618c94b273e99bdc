"""Files: lists of them, damaged ones, and file systems without locks."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import zlib
from collections.abc import Iterable, Iterator

from core.errors import InputError

WITHOUT_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})
"""Error numbers of `flock` on file systems that do not support locks."""


def list_files(folder: str, names: str = "*") -> list[str]:
    """Return the sorted paths of the files in a folder; [] if it does not exist.

    The folder is local or remote, and has no subfolders. In its path `[`, `*` and `?` are ordinary
    characters; `names` is a pattern, such as `lines*`.
    """
    import tensorflow as tf

    try:
        found = tf.io.gfile.listdir(folder)
    except tf.errors.NotFoundError:
        return []
    return [os.path.join(folder, name) for name in sorted(fnmatch.filter(found, names))]


@contextlib.contextmanager
def damage_named(files: Iterable[str]) -> Iterator[None]:
    """Name the damaged one of some gzipped TFRecord files, if the context fails because of it.

    The error of TensorFlow does not name it.

    Raises:
      InputError: a file is damaged.
    """
    import tensorflow as tf

    try:
        yield
    except (tf.errors.DataLossError, zlib.error):
        for file in files:
            try:
                for _ in tf.data.TFRecordDataset(file, compression_type="GZIP").batch(1024):
                    pass
            except tf.errors.DataLossError:
                raise InputError(
                    f"{file} is damaged; run once with --set cache=false to write it again"
                ) from None
        raise
