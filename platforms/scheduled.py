"""A schedule of a cluster, and the check of its times."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.errors import ConfigError

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 6),
)
_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/([1-9]\d?))?")


@dataclass(frozen=True)
class Scheduled:
    """A schedule.

    Attributes:
      id: the id that the cluster gave it.
      name: its name.
      cron: its times, five fields in UTC.
      state: its state, in words of the cluster.
    """

    id: str
    name: str
    cron: str
    state: str


def check_cron(text: str) -> str:
    """Return the five fields of a cron expression, separated by one space.

    Raises:
      ConfigError: `text` is not such an expression.
    """
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ConfigError(
            f"--schedule: {text!r} has {len(fields)} fields instead of 5: minute, hour, day of the "
            "month, month, day of the week; `0 3 * * 1` is every Monday at 3:00 UTC"
        )
    for field, (name, lowest, highest) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            found = _PART.fullmatch(part)
            numbers = [int(each) for each in found.groups()[:2] if each] if found else []
            in_range = all(lowest <= each <= highest for each in numbers)
            if not found or not in_range or numbers != sorted(numbers):
                raise ConfigError(
                    f"--schedule: {part!r} is no {name} from {lowest} to {highest}, such as "
                    f"{highest}, */2 or {lowest}-{highest}"
                )
    return " ".join(fields)
