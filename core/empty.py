"""The rule that an empty value is an error, wherever it comes from.

A shell replaces a variable that is not set by nothing. A default in place of the empty value would
be another experiment than the one that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import ConfigError

# `gs://$BUCKET/reviews` and `--temp_location=$FOLDER` without the variables. A file:// and a
# sqlite:// have no host, and hdfs:///reviews is a path on the default host.
_NO_HOST_NEEDED = "file|sqlite|hdfs|viewfs|dbfs"
_WITHOUT_HOST = re.compile(
    rf"(?!(?:{_NO_HOST_NEEDED}):)[A-Za-z][A-Za-z0-9+.-]*://([/:?#].*)?", re.DOTALL
)
_WITHOUT_VALUE = re.compile(r"--[\w-]+=\s*")


def problem_of(value: Any) -> str | None:
    """Return what is empty in a single value and the remedy, as a clause; None: nothing is."""
    if not isinstance(value, str):
        return None
    if not value.strip():
        return "the value is empty (an unset variable?); set a value, or leave it out"
    if _WITHOUT_HOST.fullmatch(value.strip()):
        return f"{value} has no bucket or host behind :// (an unset variable?); set one"
    if _WITHOUT_VALUE.fullmatch(value):
        return f"{value} has no value (an unset variable?); set one, or leave it out"
    return None


def check_values(values: Any, key: str = "", where: str = "") -> None:
    """Check nested mappings and lists of values.

    Args:
      values: what YAML or a command line contains; `null` in words is None, which is not empty.
      key: the key of `values` itself.
      where: the beginning of the message, such as the name of the file.

    Raises:
      ConfigError: a value is empty. The message has its key.
    """
    for name, value in _leaves(values, key):
        problem = problem_of(value)
        if problem:
            raise ConfigError(": ".join(filter(None, (where, name, problem))))


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of everything that is no mapping and no list."""
    if isinstance(value, Mapping):
        inner = list(value.items())
    elif isinstance(value, list | tuple):
        inner = list(enumerate(value))
    else:
        yield key, value
        return
    for name, each in inner:
        yield from _leaves(each, f"{key}.{name}" if key else str(name))
