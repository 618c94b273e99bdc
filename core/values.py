"""The rules for values, wherever they come from, such as a file of settings or a command line.

A value is not empty and contains no impossible character. The path of a folder is no pattern.

A shell replaces an unset variable by an empty string. If a default replaced that string, the run
would be a different experiment.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import ConfigError

# `gs://$BUCKET/reviews` and `--temp_location=$FOLDER` if the variables are not set. URLs with
# file:// and sqlite:// have no host, and hdfs:///reviews is a path on the default host.
_NO_HOST_NEEDED = "file|sqlite|hdfs|viewfs|dbfs"
_WITHOUT_HOST = re.compile(
    rf"(?!(?:{_NO_HOST_NEEDED}):)[A-Za-z][A-Za-z0-9+.-]*://([/:?#].*)?", re.DOTALL
)
_WITHOUT_VALUE = re.compile(r"--[\w-]+=\s*")
# Python decodes a byte that is not UTF-8, as in a path, to one of U+DC80 to U+DCFF.
_IMPOSSIBLE = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")


def describe_emptiness(value: Any) -> str | None:
    """Return a clause with the empty part of a value and the remedy; None without an empty part.

    Args:
      value: a single value of YAML or of a command line. Only a string can be empty.
    """
    if not isinstance(value, str):
        return None
    if not value.strip():
        return "the value is empty (an unset variable?); set a value, or leave it out"
    if _WITHOUT_HOST.fullmatch(value.strip()):
        return f"{value} has no bucket or host after :// (an unset variable?); set one"
    if _WITHOUT_VALUE.fullmatch(value):
        return f"{value} has no value (an unset variable?); set one, or leave it out"
    return None


def _describe_characters(value: Any) -> str | None:
    """Return a clause with a character that neither a path nor UTF-8 can have; None without one."""
    found = _IMPOSSIBLE.search(value) if isinstance(value, str) else None
    if found is None:
        return None
    kind = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
    return f"{value!a} contains {kind}; remove it"


def describe_pattern(path: str) -> str | None:
    """Return a clause with the problem and the remedy if a path is a pattern; otherwise None.

    Args:
      path: the path of a folder in which libraries look for files with globs.
    """
    if not glob.has_magic(path):
        return None
    return f"{path} contains [, * or ?, which libraries match as a pattern; choose another name"


def check_values(values: Any, key: str = "", where: str = "") -> None:
    """Check that no value is empty, and that none contains NUL or half of a surrogate pair.

    Args:
      values: a value of YAML or of a command line, or nested mappings and lists of values. None,
        which is `null` in YAML, is not empty.
      key: the dotted key of `values` itself; empty if it has none.
      where: the beginning of the message, such as the name of the file; empty for none.

    Raises:
      ConfigError: a value breaks a rule. The message contains its key.
    """
    for name, value in _leaves(values, key):
        problem = describe_emptiness(value) or _describe_characters(value)
        if problem:
            raise ConfigError(": ".join(filter(None, (where, name, problem))))


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of each value that is neither a mapping nor a list."""
    if isinstance(value, Mapping):
        inner = list(value.items())
    elif isinstance(value, list | tuple):
        inner = list(enumerate(value))
    else:
        yield key, value
        return
    for name, each in inner:
        yield from _leaves(each, f"{key}.{name}" if key else str(name))
