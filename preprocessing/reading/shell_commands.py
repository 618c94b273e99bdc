"""Shell commands for the remedies in messages, such as to mend a file.

The file is called FILE in them, and the new one, which is never compressed, NEW_FILE.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Sequence

from preprocessing.reading.open_files import file_compression

_DECOMPRESS = {"bz2": "bzcat", "gzip": "zcat", "zstd": "zstdcat"}
"""Compression -> the program that writes the content of a file to its standard output."""
_FOR_PRINTF = {"%": "%%", "\\": r"\\", "\t": r"\t"}
"""Character -> the text for which `printf` writes it."""


def filter_command(path: str, command: str) -> str:
    """Return the command that writes the changed content of a file to a new one.

    Args:
      path: path or URL of the file.
      command: a command that reads standard input and writes standard output, such as `tail -n +2`.

    Raises:
      InputError: for the reasons in `open_raw`.
    """
    kind = file_compression(path)
    if kind is None:
        return f"{command} < FILE > NEW_FILE"
    return f"{_DECOMPRESS[kind]} FILE | {command} > NEW_FILE"


def header_command(path: str, names: Sequence[str], separator: str, rest: str = "cat") -> str:
    """Return the command that writes a CSV file with another first line.

    Args:
      path: path or URL of the file.
      names: the names in the first line.
      separator: the character between them.
      rest: the command that writes the lines behind it, such as `tail -n +2`.

    Raises:
      InputError: for the reasons in `open_raw`.
    """
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="").writerow(names)
    printed = shlex.quote("".join(map(_for_printf, line.getvalue())) + r"\n")
    return filter_command(path, f"(printf {printed}; {rest})")


def _for_printf(char: str) -> str:
    """Return a character as `printf` of a shell reads it."""
    if char in _FOR_PRINTF or char.isprintable():
        return _FOR_PRINTF.get(char, char)
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def python_command(code: str) -> str:
    """Return the command that executes code of Python, whose literals have double quotes."""
    return f"python3 -c {shlex.quote(code)}"


def string_literal(path: str) -> str:
    """Return a path as a literal of Python in double quotes, for `python_command`."""
    return json.dumps(path, ensure_ascii=False)
