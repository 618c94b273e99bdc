"""Files: the list of a folder, a free name, a digest, a lock, and the outputs of commands."""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import hashlib
import itertools
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NoReturn

from core.errors import ConfigError, not_utf8
from core.storage import expand_home, tensorflow_names

_HASHED_BYTES = 1 << 20


def list_files(folder: str, names: str = "*") -> list[str]:
    """Return the sorted paths of the files in a folder; [] if it does not exist.

    Args:
      folder: a local or remote folder without subfolders. In its path `[`, `*` and `?` are ordinary
        characters.
      names: a pattern for the names of the files, such as `lines*`.

    Raises:
      tensorflow.errors.OpError: the folder cannot be listed.
    """
    found = fnmatch.filter(tensorflow_names(folder), names)
    return [os.path.join(folder, name) for name in sorted(found)]


def free_name(stem: str, ending: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name; if it is taken, the first free one with a number, such as `mine-2.yaml`.

    Args:
      stem: the name without its ending.
      ending: the ending, which follows the number; empty for a folder.
      is_taken: returns whether a name is taken.
    """
    others = (f"{stem}-{number}{ending}" for number in itertools.count(2))
    names = itertools.chain([f"{stem}{ending}"], others)
    return next(name for name in names if not is_taken(name))


def read_text(file: Path, where: str, most: int, remedy: str) -> str:
    """Return the content of a small file of a user, UTF-8 with or without a byte order mark.

    Args:
      file: the file.
      where: the file in messages.
      most: the maximum number of bytes.
      remedy: the end of the message if the file has more bytes.

    Raises:
      ConfigError: the file cannot be read, is not UTF-8, or is too large.
    """
    try:
        content = file.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {not_utf8(error)}") from None
    if len(content) > most:
        raise ConfigError(
            f"{where} has {len(content):,} bytes; at most {most:,} are allowed, {remedy}"
        )
    return text


def lock_file(path: str, *, waits: bool = False) -> int:
    """Lock a file with flock; return its descriptor.

    The kernel releases the lock when all processes with the descriptor have closed it or ended.

    Args:
      path: the local path of the file, which is created if it is missing.
      waits: whether to wait until no other process holds the lock.

    Raises:
      BlockingIOError: another process holds the lock, and `waits` is false.
      OSError: the file cannot be created, or its file system does not support locks.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def stream_sha256(stream: BinaryIO) -> str:
    """Return the SHA-256 of the rest of a stream, 64 hexadecimal digits.

    Args:
      stream: an open stream of bytes, local or remote, which is read in parts of 1 MiB.

    Raises:
      OSError, tensorflow.errors.OpError: the stream cannot be read.
    """
    digest = hashlib.sha256()
    while data := stream.read(_HASHED_BYTES):
        digest.update(data)
    return digest.hexdigest()


def output_path(file: str | Path, option: str = "--output") -> str:
    """Return the absolute path of the output of a command, without symbolic links.

    Args:
      file: the value of the option; `~` is the home folder of the user.
      option: the option that names the file, for messages.

    Raises:
      ConfigError: the path is that of a folder or a device, or no home folder is known.
    """
    expanded = expand_home(str(file))
    if expanded.startswith("~/"):
        raise ConfigError(
            f"{option}: {file} begins with ~, and no home folder is known for it; write the whole "
            f"path, or ./{file}"
        )
    path = os.path.realpath(expanded)
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigError(f"{option}: {path} is not a regular file; name another file")
    return path


def check_replaced(
    file: Path, begins: str, kind: str, option: str = "--output", such_as: str = ""
) -> None:
    """Check that an output replaces only an earlier output of its kind, and no file of the user.

    Args:
      file: the value of the option, see `output_path`.
      begins: the beginning of each output of this kind.
      kind: a noun for an output of this kind, with its article.
      option: the option that names the file, for messages.
      such_as: another file, for the message; empty for none.

    Raises:
      ConfigError: the file has other content, or cannot be read.
    """
    try:
        with open(output_path(file, option), "rb") as stream:
            begun = stream.read(len(begins))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise ConfigError(f"{option}: {file} cannot be read: {error.strerror}") from None
    if begun and begun != begins.encode():
        refuse_to_replace(file, kind, option, such_as)


def refuse_to_replace(
    file: Path, kind: str, option: str = "--output", such_as: str = ""
) -> NoReturn:
    """Refuse an output that would replace a file of the user.

    Args:
      file: see `check_replaced`.
      kind: see `check_replaced`.
      option: see `check_replaced`.
      such_as: see `check_replaced`.

    Raises:
      ConfigError: always.
    """
    example = f", such as {option} {shlex.quote(such_as)}" if such_as else ""
    raise ConfigError(
        f"{option}: {file} is there and is not {kind}, so it is not replaced; set another "
        f"file{example}"
    )


def write_output(file: Path, text: str, option: str = "--output") -> None:
    """Write `text` to the output of a command, completely or not at all.

    Args:
      file: the value of the option, see `output_path`.
      text: the content, which is written as UTF-8.
      option: the option that names the file, for messages.

    Raises:
      ConfigError: the file cannot be written. An earlier file is unchanged.
    """
    path = Path(output_path(file, option))
    scratch = path.with_name(f".{path.name}.part")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise ConfigError(f"{option}: {path} cannot be written: {error.strerror}") from None
