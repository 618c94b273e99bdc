"""The words of a report in place of the names in files and settings, and figures with units."""

from __future__ import annotations

import math
import re

from components.line_counts import DUPLICATE
from components.serving_check.results import GOLDEN
from preprocessing import features
from preprocessing.reading import records

_REASONS = {
    DUPLICATE: "the same text is in a held-out split",
    records.BAD_LABEL: "the label is missing or unknown",
    records.OTHER_SCALE: "the label is of another scale",
    records.NO_TEXT: "no text",
    records.UNKNOWN_COLUMNS: "the columns are unknown",
    records.INVALID_UTF8: "not UTF-8",
    records.BROKEN_JSON: "broken JSON",
    records.WRONG_TYPE: "a list, an object or a duration in place of a label or a text",
    records.BROKEN_CSV: "broken CSV",
    records.CORRUPT_ARCHIVE: "the archive is damaged",
    records.LINE_TOO_LONG: "the line is too long",
    records.REPEATED_HEADER: "a repeated header",
}
"""Reason of a rejected line -> words."""
_CHECKS = {
    "process": "serving process",
    "load_seconds": "time to load the model",
    "memory_mb": "memory of the server",
    "p99_ms": "slowest 1 % of requests with one text take at least",
    "reviews_per_second": "throughput",
    "texts_per_second": "throughput",
    "largest_difference": "difference between the ways to send a text",
    "single_difference": "difference between a batch and a single text",
    "evaluation_difference": "difference from the evaluation",
}
"""Result of the serving check -> words."""
_UNITS = {"reviews/s": "a second", "texts/s": "a second"}


def reason(name: str) -> str:
    """Return the reason of a rejected line in words."""
    return _REASONS.get(name, name.replace("_", " "))


def slice_name(feature: str, value: str) -> str:
    """Return the name of a slice in words, such as `20–49 words`."""
    if feature != features.LENGTH_BUCKET:
        return f"{feature.replace('_', ' ')} {value}"
    return f"{value.replace('-', '–').replace('+', ' or more')} words"


def check_name(name: str) -> str:
    """Return the name of a result of the serving check in words; classes keep their names."""
    if name.startswith(GOLDEN):
        return f"golden sentences of {name.removeprefix(GOLDEN)}"
    return _CHECKS.get(name, name.replace("_", " "))


def has_golden(names: list[str]) -> bool:
    """Return whether results of the serving check with these names have golden sentences."""
    return any(name.startswith(GOLDEN) for name in names)


def unit(name: str) -> str:
    """Return a unit of the serving check as a report shows it."""
    return _UNITS.get(name, name)


def figure(value: float) -> str:
    """Return a measurement with a suitable number of digits, such as `0.8385` or `41,817`.

    A difference in the last digits of a float32 is `below 0.0001`.
    """
    if 0 < abs(value) < 1e-4:
        return "below 0.0001"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def metric(value: float, pattern: str = "{:.4f}") -> str:
    """Return a metric as text; `undefined` for NaN."""
    return pattern.format(value) if math.isfinite(value) else "undefined"


def difference(value: float) -> str:
    """Return a difference of metrics with its sign, such as `−0.0060`; `undefined` for NaN."""
    return metric(value, "{:+.4f}").replace("-", "−")


def duration(seconds: float) -> str:
    """Return a duration in words, such as `7.5 s`, `3 min 12 s` or `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def size(number: float) -> str:
    """Return a number of bytes in words, such as `12.3 MiB`."""
    for name in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:,.0f} bytes" if name == "bytes" else f"{number:,.1f} {name}"
        number /= 1024
    return f"{number:,.1f} GiB"


def first_number(text: str) -> int:
    """Return the first number in a text, by which names such as `20-49` are sorted; 0 without."""
    found = re.search(r"\d+", text)
    return int(found[0]) if found else 0
