"""Files: the list of a folder, and the outputs of commands."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from pathlib import Path

from core.errors import ConfigError


def list_files(folder: str, names: str = "*") -> list[str]:
    """Return the sorted paths of the files in a folder; [] if it does not exist.

    The folder is local or remote, and has no subfolders. In its path `[`, `*` and `?` are ordinary
    characters; `names` is a pattern, such as `lines*`.

    Raises:
      tensorflow.errors.OpError: the folder cannot be listed.
    """
    import tensorflow as tf

    try:
        found = tf.io.gfile.listdir(folder)
    except tf.errors.NotFoundError:
        return []
    return [os.path.join(folder, name) for name in sorted(fnmatch.filter(found, names))]


def output_path(file: str | Path) -> str:
    """Return the absolute path of the output of a command, without symbolic links.

    Args:
      file: the value of `--output`; `~` is the folder of the user.

    Raises:
      ConfigError: a folder or a device has this path.
    """
    path = os.path.realpath(os.path.expanduser(file))
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigError(f"--output: {path} is not a regular file; name another file")
    return path


def write_output(file: Path, text: str) -> None:
    """Write `text` to the output of a command, completely or not at all.

    Raises:
      ConfigError: the file cannot be written; an earlier file stays as it is.
    """
    path = Path(output_path(file))
    scratch = path.with_name(f".{path.name}.part")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise ConfigError(f"--output: {path} cannot be written: {error.strerror}") from None
