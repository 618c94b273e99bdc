"""The classes of `data.labels: stars`: the values of a scale, in ascending order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm

from core.errors import InputError
from preprocessing.labels import Labels
from preprocessing.reading.listing import listed
from preprocessing.reading.ratings import find_rating, number_name

MAX_VALUES = 25
"""The largest number of values of a scale. More of them are a measurement."""
_MIN_VALUES = 3
_MOST = 0.5
"""The minimum fraction of lines whose label is a number."""
_SHOWN = 8
"""Maximum number of labels in a message, which are more than usual because they are short."""
_STARS = range(1, 6)
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:[.,][0-9]{1,3})?", re.ASCII)


def choose_stars(
    found: Mapping[str, int], column: str, is_rating: bool
) -> tuple[Labels, dict[str, int | None]]:
    """Return the values of the scale of some labels, and the class of each label.

    The scale goes in equal steps from the least to the greatest value. Integers from 1 to 5 have
    the scale 1 to 5 if there is a 5, or if the column has the name of a rating. A label that is no
    number is not on the scale.

    Args:
      found: label in any case -> number of its lines.
      column: the name of the column in a message.
      is_rating: whether the column has the name of a rating of 1 to 5 stars. Then a 0 beside them
        is an unknown rating, which is not on the scale.

    Returns:
      The classes in ascending order; and label in lower case -> index of its class.

    Raises:
      InputError: most of the labels are no numbers; the scale has fewer than 3 or more than
        MAX_VALUES values; or a value of the scale has no lines.
    """
    values = {label: rating(label) for label in found}
    numbers = {label: value for label, value in values.items() if value is not None}
    lines = sum(found[label] for label in numbers)
    if lines < _MOST * sum(found.values()):
        raise InputError(
            f"data.labels: stars requires numbers, and the labels in {column} are "
            f"{listed(found, _SHOWN)}; with data.labels: each every label is a class"
        )
    present = sorted(set(numbers.values()))
    stars = set(map(Decimal, _STARS))
    has_unknown = is_rating and present[0] == 0 and present[-1] == _STARS[-1]
    if has_unknown and set(present[1:]) <= stars:
        del present[0]
    scale = _scale(present, is_rating)
    shown = listed([number_name(value) for value in present], _SHOWN)
    if len(present) < _MIN_VALUES or len(scale) > MAX_VALUES:
        raise InputError(
            f"data.labels: stars requires a scale of {_MIN_VALUES} to {MAX_VALUES} values, and the "
            f"labels in {column} are {shown}; with data.labels: each every label is a class"
        )
    missing = [number_name(value) for value in scale if value not in present]
    names = [number_name(value) for value in scale]
    if missing:
        raise InputError(
            f"data.labels: stars found the scale {names[0]} to {names[-1]} in {column}, and no "
            f"line has {listed(missing, _SHOWN)}; add such lines, or map the labels that exist to "
            f"classes in data.labels: {{{': ?, '.join(map(number_name, present[:_SHOWN]))}: ?}}"
        )
    index = {value: number for number, value in enumerate(scale)}
    label_map: dict[str, int | None] = {
        label.lower(): index[value] for label, value in numbers.items() if value in index
    }
    return Labels(tuple(names), is_ordered=True), label_map


def rating(label: str) -> Decimal | None:
    """Return the value of a number, or of a rating such as `4,0 von 5 Sternen`, or None."""
    text = label.strip()
    if _NUMBER.fullmatch(text):
        return Decimal(text.replace(",", "."))
    found = find_rating(text)
    return found.value if found else None


def _scale(present: Sequence[Decimal], is_rating: bool) -> list[Decimal]:
    """Return the values of the scale with these ones, at most one more than are allowed.

    Args:
      present: the values that occur, ascending.
      is_rating: see `choose_stars`.
    """
    has_greatest = is_rating or present[-1] == _STARS[-1]
    if set(present) <= set(map(Decimal, _STARS)) and has_greatest:
        return list(map(Decimal, _STARS))
    steps = [Fraction(value) - Fraction(present[0]) for value in present[1:]]
    if not steps:
        return list(present)
    scale = lcm(*(step.denominator for step in steps))
    step = Fraction(gcd(*(int(step * scale) for step in steps)), scale)
    count = min(MAX_VALUES, int(steps[-1] / step)) + 1
    width = Decimal(step.numerator) / Decimal(step.denominator)
    return [present[0] + width * number for number in range(count)]
