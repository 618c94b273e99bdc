"""The search space of a model: its form, and the part that the Tuner searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from core.settings import Section, hint, in_own_words
from trainer_module.settings import Training

_RATE = "learning_rate"
_SAMPLINGS = ("linear", "log", "reverse_log")
"""The samplings of KerasTuner."""


def find_problem(space: Any, known: type[Section]) -> str | None:
    """Return what is wrong with a search space, as a predicate; None if nothing is.

    Args:
      space: the SEARCH_SPACE of a model: `learning_rate` or a hyperparameter -> the values, a list,
        or (low, high, sampling) with numbers.
      known: the Hyperparameters of the model.
    """
    if not isinstance(space, Mapping):
        return 'is no mapping, such as {"learning_rate": (0.001, 0.03, "log")}'
    for name, values in space.items():
        names = [_RATE, *known.model_fields]
        if name not in names:
            suggestion = hint(str(name), names)
            return f"contains {name!r}, which is no hyperparameter of the model; {suggestion}"
        section = Training if name == _RATE else known
        if problem := _problem_of_values(values) or _problem_of_field(name, values, section):
            return f"contains {name!r}: {values!r}, {problem}"
    return None


def free_values(space: Mapping[str, Any], training: Training) -> dict[str, Any]:
    """Return the part of a search space whose values the settings do not contain.

    Args:
      space: the SEARCH_SPACE of the model.
      training: the settings, with `tuner_trials`.

    Raises:
      ValueError: the settings contain all values.
    """
    fixed = training.hyperparameters.keys() | ({_RATE} if training.learning_rate else ())
    free = {name: values for name, values in space.items() if name not in fixed}
    if free:
        return free
    if not space:
        raise ValueError(
            f"training.tuner_trials: {training.tuner_trials}, but the SEARCH_SPACE of "
            f"{training.model} is empty; unset training.tuner_trials"
        )
    raise ValueError(
        f"training.tuner_trials: {training.tuner_trials}, but the settings contain all values "
        f"that the Tuner tries; remove one of {', '.join(space)}"
    )


def _problem_of_values(values: Any) -> str | None:
    """Return what is wrong with the form of the values of a name, as a clause."""
    if isinstance(values, list):
        kinds = sorted({type(value).__name__ for value in values})
        if len(kinds) != 1 or kinds[0] not in ("int", "float", "str"):
            return "but a list has values of one type, which is int, float or str"
        return None
    if not (isinstance(values, tuple) and len(values) == 3 and values[2] in _SAMPLINGS):
        return 'which is neither a list nor (low, high, "log") nor (low, high, "linear")'
    low, high, sampling = values
    if any(type(value) not in (int, float) for value in (low, high)) or not low <= high:
        return "but low and high must be numbers, low the smaller one"
    if sampling != "linear" and low <= 0:
        return f'but low must be more than 0 with "{sampling}"'
    return None


def _problem_of_field(name: str, values: Any, section: type[Section]) -> str | None:
    """Return the reason why a field does not allow the values, as a clause."""
    is_range = isinstance(values, tuple)
    for value in map(float, values[:2]) if is_range else values:
        try:
            section.model_validate({name: value})
        except ValidationError as error:
            # Further hyperparameters may be required, and depend on each other.
            problems = [each for each in error.errors() if each["loc"][:1] == (name,)]
            if problems:
                remedy = ""
                if is_range and problems[0]["type"].endswith("_type"):
                    remedy = "; a range has float values, set a list"
                problem = in_own_words(problems[0]["msg"])
                return f"but {name} does not allow {value!r}: {problem}{remedy}"
    return None
