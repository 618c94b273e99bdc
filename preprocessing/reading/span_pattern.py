"""Placeholders for spans in the path of an input, such as `exports/{YYYY}-{MM}-{DD}`.

The conventions are those of TFX's ExampleGen (`tfx.components.example_gen.utils`): `{SPAN}` is a
number; `{YYYY}`, `{MM}` and `{DD}` together are a date, whose span is the number of days since
1970-01-01; `{VERSION}` is a number beside one of them; `{SPAN:4}` and `{VERSION:2}` have exactly as
many digits, with zeros on the left.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.storage import is_url

NEWEST = "newest"
"""The value of `data.span` for the newest span that is there."""

_PLACEHOLDER = re.compile(r"\{([A-Z]+)(?::([^{}/]*))?\}")
_OTHER_PLACEHOLDER = re.compile(r"\{[^{}/]*[A-Za-z][^{}/]*\}|%[YymdFj]")
"""What other programs have in place of a placeholder."""
_DATE = {"YYYY": 4, "MM": 2, "DD": 2}
"""Placeholder of a date -> number of its digits."""
_SPAN, _VERSION = "SPAN", "VERSION"
_KNOWN = (_SPAN, *_DATE, _VERSION)
_EPOCH = datetime.date(1970, 1, 1)
_SECONDS_OF_A_DAY = 86_400
_HOUR, _SIXTIETH = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_TIME = rf"[T ]{_HOUR}:{_SIXTIETH}(?::{_SIXTIETH}(?:\.[0-9]+)?)?(?:Z|[+-]{_HOUR}:?{_SIXTIETH})?"
_DAY = re.compile(
    rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})({_TIME})?"
    # Airflow's `ts_nodash` has a T before the time.
    rf"|([0-9]{{4}})([0-9]{{2}})([0-9]{{2}})(T?{_HOUR}{_SIXTIETH}{_SIXTIETH})?"
)
_SECONDS = re.compile(r"[0-9]{10}")
"""Seconds since 1970, in which Kubeflow Pipelines has the time of a schedule."""
_DAYS_BEFORE = re.compile(r"(.+)-([0-9]{1,4})d")


@dataclass(frozen=True)
class SpanPattern:
    """A path with placeholders for spans.

    Attributes:
      base: the folder above the first name with a placeholder, local or a URL.
      names: the names of folders, or of folders and a file, below `base`; at least one of them has
        a placeholder.
      is_date: whether the spans are dates.
      has_version: whether there is a placeholder for a version.
    """

    base: str
    names: tuple[str, ...]
    is_date: bool
    has_version: bool

    def __str__(self) -> str:
        return self.below(self.base)

    def below(self, folder: str) -> str:
        """Return the same path with placeholders below another folder than `base`."""
        return "/".join([folder.rstrip("/"), *self.names])

    def match(self, parts: Sequence[str]) -> tuple[int, int | None] | None:
        """Return the span and the version of a path, or None if it does not match.

        Args:
          parts: the names of the path below `base`, as many as `names`.

        Returns:
          The number of the span; and that of the version, None without a placeholder for it.

        Raises:
          ValueError: the path matches, and its date does not exist, such as 2026-02-30.
        """
        if len(parts) != len(self.names):
            return None
        values: dict[str, str] = {}
        for name, part in zip(self.names, parts, strict=True):
            found = re.fullmatch(_regex(name), part)
            if not found:
                return None
            values |= found.groupdict()
        version = int(values[_VERSION]) if self.has_version else None
        if not self.is_date:
            return int(values[_SPAN]), version
        return _days(*(values[name] for name in _DATE)), version

    def may_contain(self, parts: Sequence[str]) -> bool:
        """Return whether a folder, given by its names below `base`, may contain matches."""
        pairs = zip(self.names, parts, strict=False)
        return all(re.fullmatch(_regex(name), part) for name, part in pairs)

    def inside(self, path: str) -> str:
        """Return the part of a path after the folder of a span; `path` itself if it is in none."""
        parts = path.removeprefix(self.base.rstrip("/") + "/").split("/")
        count = len(self.names)
        is_inside = len(parts) > count and self.may_contain(parts[:count])
        return "/".join(parts[count:]) if is_inside else path

    @property
    def least(self) -> int:
        """The number of the first span that is possible."""
        return (datetime.date.min - _EPOCH).days if self.is_date else 0

    def name(self, span: int) -> str:
        """Return the name of a span in a message: its date, or its number."""
        if not self.is_date:
            return str(span)
        return (_EPOCH + datetime.timedelta(days=span)).isoformat()

    def number(self, span: str) -> int | None:
        """Return the number of the span that the setting `data.span` names.

        Args:
          span: NEWEST, a number, or, if the spans are dates, a date or a time such as 2026-11-28,
            20261128, 2026-11-28T03:00:00Z or 1795834800, of which the day counts, for seconds in
            UTC. With `-1d` at its end it is the day before.

        Returns:
          The number; None for NEWEST.

        Raises:
          ValueError: the setting is no such value.
        """
        if span == NEWEST:
            return None
        if not self.is_date:
            if not re.fullmatch("[0-9]+", span):
                raise ValueError(
                    f"span: {span} is not a number, and the spans of {self} are numbers; set one, "
                    f"or {NEWEST}"
                )
            return int(span)
        before = _DAYS_BEFORE.fullmatch(span)
        day, delay = (before[1], int(before[2])) if before else (span, 0)
        if _SECONDS.fullmatch(day):
            return int(day) // _SECONDS_OF_A_DAY - delay
        found = _DAY.fullmatch(day)
        try:
            if found:
                parts = found.group(1, 2, 3) if found[1] else found.group(5, 6, 7)
                number = _days(*parts) - delay
                if number >= self.least:
                    return number
        except ValueError:
            pass
        raise ValueError(
            f"span: {span} is not a date, and the spans of {self} are dates; set one such as "
            f"2026-11-28, or {NEWEST}"
        )


def placeholder_hint(path: str) -> str:
    """Return a clause with the placeholders, for a missing path that seems to contain others.

    It is empty for any other path.

    Args:
      path: the path, such as `exports/{yyyy}-{mm}-{dd}` or `exports/%Y-%m-%d`.
    """
    if not _OTHER_PLACEHOLDER.search(path):
        return ""
    return f"; the placeholders of spans are {_all_placeholders()}"


def spans_of(input_base: str | None, window: int, span: str) -> SpanPattern | None:
    """Return the pattern of `data.input_base`, or None if it has no placeholder.

    Args:
      input_base: the absolute path or the URL; None: the sample.
      window: `data.window`.
      span: `data.span`.

    Raises:
      ValueError: one of the settings is wrong, or they do not fit together. The message begins with
        the name of the setting.
    """
    try:
        pattern = parse_pattern(input_base) if input_base else None
    except ValueError as error:
        raise ValueError(f"input_base: {error}") from None
    if pattern:
        pattern.number(span)
        return pattern
    values = {"window": (window, 1), "span": (span, NEWEST)}
    for key, (value, usual) in values.items():
        if value != usual:
            raise ValueError(
                f"{key}: {value} requires spans in data.input_base; write {{SPAN}}, or {{YYYY}}, "
                "{MM} and {DD} into the path, or remove the setting"
            )
    return None


def parse_pattern(path: str) -> SpanPattern | None:
    """Return the pattern of a path, or None if it has no placeholder.

    Args:
      path: an absolute path or a URL.

    Raises:
      ValueError: a placeholder is unknown, is repeated, has a wrong width, or lacks another one.
    """
    found = [(match[1], match[2]) for match in _PLACEHOLDER.finditer(path)]
    if not found:
        return None
    names = [name for name, _ in found]
    shown = "{" + "}, {".join(dict.fromkeys(names)) + "}"
    for name, width in found:
        if name not in _KNOWN:
            raise ValueError(
                f"{path} has the unknown placeholder {{{name}}}; known are {_all_placeholders()}"
            )
        if names.count(name) > 1:
            raise ValueError(f"{path} has {{{name}}} more than once; write it once")
        if width is not None and (name in _DATE or not re.fullmatch("[1-9][0-9]?", width)):
            allowed = "has no width" if name in _DATE else "requires a number of digits as width"
            raise ValueError(f"{path}: {{{name}:{width}}} is wrong, {{{name}}} {allowed}")
    dates = [name for name in names if name in _DATE]
    if dates and (len(dates) < len(_DATE) or _SPAN in names):
        raise ValueError(
            f"{path} has {shown}; a span is {{SPAN}}, or {{YYYY}}, {{MM}} and {{DD}} together"
        )
    if names == [_VERSION]:
        raise ValueError(
            f"{path} has {{VERSION}} without a span; add {{SPAN}}, or {{YYYY}}, {{MM}} and {{DD}}"
        )
    if re.search(r"\{(SPAN|VERSION)\}\{(SPAN|VERSION)", path):
        raise ValueError(
            f"{path} has {shown} side by side, so their digits cannot be separated; put another "
            "character between them, or write a width such as {SPAN:8}"
        )
    parts = path.rstrip("/").split("/")
    first = next(index for index, part in enumerate(parts) if _PLACEHOLDER.search(part))
    if is_url(path) and first < 3:
        raise ValueError(f"{path}: the name of a bucket has no placeholder")
    base = "/".join(parts[:first]) or "/"
    return SpanPattern(base, tuple(parts[first:]), bool(dates), _VERSION in names)


def _all_placeholders() -> str:
    return ", ".join(f"{{{name}}}" for name in _KNOWN)


def _regex(name: str) -> str:
    """Return the regular expression of a name, with a group for each placeholder."""
    parts = _PLACEHOLDER.split(name)
    found = re.escape(parts[0])
    for placeholder, width, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        digits = _DATE.get(placeholder) or width
        found += f"(?P<{placeholder}>[0-9]{f'{{{digits}}}' if digits else '+'})" + re.escape(text)
    return found


def _days(year: str, month: str, day: str) -> int:
    return (datetime.date(int(year), int(month), int(day)) - _EPOCH).days
