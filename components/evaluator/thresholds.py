"""The section `evaluation` of the settings: thresholds and slices. It imports no TFX."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from core.errors import InputError
from core.settings import Fraction, Section, hint
from preprocessing.features import LENGTH_BUCKET
from preprocessing.labels import plain_name

_SliceName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
_SHOWN = 20
"""Maximum number of classes that a message names."""
_MOST_PLACES = 16
"""Number of decimal places with which a fraction is not rounded any more."""


class Evaluation(Section):
    """The evaluation, and the thresholds that a model has to reach to be blessed."""

    min_accuracy: Fraction = 0.8
    """Minimum accuracy on the test split; 0: none."""
    min_class_recall: Fraction | dict[str, Fraction] = 0.4
    """Minimum recall of each class on the test split; 0: none. A mapping class -> minimum is for
    these classes only. A model that always answers one class has the recall 0 for the others."""
    max_accuracy_drop: Fraction = 0.01
    """Maximum drop of the accuracy below that of the served model; 1: none."""
    slices: list[Literal["length_bucket"]] = ["length_bucket"]
    """Features. The metrics are also computed for the reviews with each of their values."""
    patterns: dict[_SliceName, Annotated[str, Field(min_length=1)]] = {}
    """Name of a slice -> regular expression of Python, such as `price: (?i)cheap|expensive`. The
    metrics are also computed for the reviews in which it is found, and for the others."""

    @field_validator("patterns")
    @classmethod
    def _check_patterns(cls, value: dict[str, str]) -> dict[str, str]:
        for name, pattern in value.items():
            if name == LENGTH_BUCKET:
                raise ValueError(f"{name} is the name of a feature; choose another one")
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(
                    f"{name}: {pattern!r} is not a regular expression of Python: {error}"
                ) from None
        return value

    @field_validator("min_class_recall", mode="before")
    @classmethod
    def _check_minimums(cls, value: Any) -> Any:
        minimums = list(value.values()) if isinstance(value, dict) else [value]
        if not minimums or not all(map(_is_fraction, minimums)):
            raise ValueError(
                "must be a number from 0 to 1, or a mapping of classes to such numbers"
            )
        if not isinstance(value, dict):
            return value
        # YAML reads the classes 1 and true as a number and a boolean.
        return {
            str(name).lower() if isinstance(name, bool) else plain_name(str(name)): minimum
            for name, minimum in value.items()
        }

    @property
    def named_classes(self) -> list[str]:
        """The classes that the thresholds name, which must exist."""
        return list(self.min_class_recall) if isinstance(self.min_class_recall, dict) else []


def _is_fraction(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def rounded(value: float, passes: Callable[[float], bool], places: int = 4) -> str:
    """Return a value as text that is on the same side of a threshold as the value itself.

    A model with the accuracy 0.94996 misses a minimum of 0.95, and 0.9500 would not show why.

    Args:
      value: the value.
      passes: returns whether a value passes the threshold.
      places: the number of decimal places, unless this requires more.
    """
    for number in range(places, _MOST_PLACES):
        text = f"{value:,.{number}f}"
        if passes(float(text.replace(",", ""))) == passes(value):
            return text
    return f"{value:,}"


def check_names(key: str, named: Iterable[str], classes: Iterable[str]) -> None:
    """Check that classes in the settings exist.

    Args:
      key: the setting that names the classes, such as `evaluation.min_class_recall`.
      named: the names in the setting.
      classes: the names that exist.

    Raises:
      InputError: a name is not the name of a class.
    """
    known = list(classes)
    for name in named:
        if name not in known:
            similar = difflib.get_close_matches(name, known, n=1)
            more = len(known) - _SHOWN
            shown = [*known[:_SHOWN], *([f"and {more:,} more"] if more > 0 else [])]
            raise InputError(f"{key}: no class is called {name!r}, {hint(name, shown, similar)}")
