"""The base class of the sections of the settings, and one-line messages for validation errors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from core.errors import InputError
from core.storage import absolute, absolute_local
from core.values import check_values

_GREATEST = 2**53
"""The greatest integer up to which every platform passes all integers without rounding."""

_OWN_WORDS = (
    ("^(Input|String|List|Tuple|Dictionary) should ", "must "),
    ("^Keys should be strings", "the key must be a string"),
    ("^Field required", "is missing"),
    (", (unable to|got a) .*", ""),
    (" after validation, not .*", ""),
    ("match pattern", "match the pattern"),
    ("a valid dictionary( or instance of .*)?", "a mapping of keys"),
    ("a valid boolean", "true or false"),
    ("a valid integer", "an integer"),
    ("a valid tuple", "a list"),
    ("a valid ", "a "),
    ("greater than or equal to", "at least"),
    ("less than or equal to", "at most"),
    ("greater than", "more than"),
)
"""Pattern in a message of pydantic -> the words of this package, in the order of replacement."""


def _check_greatest(value: int) -> int:
    if value > _GREATEST:
        raise ValueError(f"must be at most {_GREATEST:,}")
    return value


PositiveInt = Annotated[int, Field(ge=1), AfterValidator(_check_greatest)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
PathOrUrl = Annotated[str, Field(min_length=1), AfterValidator(absolute)]
"""A path, which becomes absolute, or a URL."""
LocalPath = Annotated[str, Field(min_length=1), AfterValidator(absolute_local)]
"""A path of this machine, which becomes absolute."""


class Section(BaseModel):
    """A part of the settings without unknown keys, type conversion or changes after loading.

    A number must be finite: an infinite learning rate or timeout would fail later, in a component.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


AnySection = TypeVar("AnySection", bound=Section)


def with_parameters(section: AnySection, values: Mapping[str, Any]) -> AnySection:
    """Return `section` with the values of a run's parameters, validated like a settings file.

    Args:
      section: the settings with which the pipeline was compiled.
      values: parameter -> value. A parameter has the name of the key whose value it replaces. A
        number may be text, or, as in Kubeflow, a float without a fraction.

    Raises:
      ConfigError: a value is empty.
      InputError: a value is not allowed, or contradicts the other settings.
    """
    for name, value in values.items():
        check_values(value, f"parameter {name}")
    kind = type(section)
    try:
        return kind.model_validate({**section.model_dump(), **values}, strict=False)
    except ValidationError as error:
        problem = first_problem(error, kind)
        if error.errors()[0]["loc"]:
            raise InputError(f"parameter {problem}") from None
        given = ", ".join(f"{name}={value}" for name, value in values.items())
        raise InputError(
            f"parameter {given} contradicts the settings that the pipeline was compiled with: "
            f"{problem}. Change both in the settings and compile again"
        ) from None


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return `section.key` -> value of nested settings.

    Args:
      settings: the settings. A mapping in it is a section, except an empty one, which is a value.
      prefix: the key of `settings` itself, followed by a dot; empty if it has none.
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= flat_settings(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def first_problem(error: ValidationError, section: type[BaseModel], inside: str = "") -> str:
    """Return a line `key: problem` for the first problem, and the number of further problems.

    Args:
      error: the error of the validation.
      section: the model that did not validate.
      inside: the dotted key of `section` itself; empty if it has none.
    """
    problems = error.errors()
    problem = problems[0]
    location = problem["loc"]
    path = [inside, *(str(part) for part in location if part != "[key]")]
    key = ".".join(filter(None, path))
    sections = dict(sections_of(section))
    if problem["type"] == "extra_forbidden":
        name = str(location[-1])
        inner = sections.get(".".join(map(str, location[:-1])))
        known = list(inner.model_fields) if inner else []
        others = [
            (field, f"{at}.{field}")
            for at, each in sections.items()
            if at
            for field in each.model_fields
        ]
        same = closest(name, [field for field, _ in others])
        elsewhere = [dotted for field, dotted in others if field == same]
        outer, _, rest = name.partition(".")
        if outer in known and rest:
            clause = f"; keys with a dot are for --set, in a file write {rest}: below {outer}:"
        else:
            clause = f", {hint(name, known, elsewhere)}"
        text = f"{key}: unknown key{clause}"
    elif problem["type"] == "literal_error":
        value, expected = problem["input"], problem["ctx"]["expected"]
        known = [name.strip("'") for name in re.split(", | or ", expected)]
        text = f"{key}: unknown value {value!r}, {hint(str(value), known)}"
    else:
        message = in_own_words(problem["msg"])
        value = problem["input"]
        # A whole section is too long for a line, and our own messages may begin with the value.
        is_section = isinstance(value, dict) and not problem["type"].endswith("_type")
        is_there = problem["type"] == "value_error" and message.startswith(str(value))
        # Its value is that of the list around it.
        is_missing = problem["type"] == "missing"
        is_shown = not (is_section or is_there or is_missing or isinstance(value, BaseModel))
        seen = f", not {value!r}" if is_shown else ""
        inner = sections.get(".".join(map(str, location)))
        # The validator of a whole section names the key in it.
        names_key = inner is not None and message.partition(":")[0] in inner.model_fields
        separator = "." if names_key else ": "
        text = f"{key}{separator}{message}{seen}" if key else message
    more = len(problems) - 1
    return text + (f" (and {more} more)" if more else "")


def in_own_words(message: str) -> str:
    """Return a message of pydantic with the words of this package, such as `must be at most 1`.

    Pydantic calls a value the input, which is the data of a run in this package.

    Args:
      message: the message of pydantic, or of one of our own validators.
    """
    own = message.removeprefix("Value error, ")
    if own != message:
        return own
    for pattern, words in _OWN_WORDS:
        message = re.sub(pattern, words, message)
    return message


def hint(name: str, known: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """Return a clause that suggests a name in place of an unknown one.

    Args:
      name: the unknown name.
      known: the names that are possible here. The closest one is suggested.
      elsewhere: keys with such a name in other sections. The first one is suggested if no known
        name is close. If there is none, the clause lists the known names.
    """
    found = closest(name, known) or next(iter(elsewhere), None)
    return f"did you mean {found}?" if found else f"known are {', '.join(known) or 'none'}"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that is meant by an unknown one, or None if none is close.

    Args:
      name: the unknown name.
      known: the names that are possible. The most similar one is returned, in any case, or the only
        one that has all words of `name`, such as batch_size_per_replica for batch_size.
    """
    cases = {each.lower(): each for each in reversed(list(known))}
    similar = difflib.get_close_matches(name.lower(), cases, n=1, cutoff=0.7)
    words = set(name.lower().split("_"))
    longer = [each for each in cases if words <= set(each.split("_"))]
    found = similar or (longer if len(longer) == 1 else [])
    return cases[found[0]] if found else None


def sections_of(
    section: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the key of each section, and its class.

    Args:
      section: the outermost section, which is yielded first.
      prefix: its key.
    """
    yield prefix, section
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from sections_of(field.annotation, f"{prefix}.{name}".removeprefix("."))


def keys_of_paths(section: type[BaseModel]) -> Iterator[str]:
    """Yield the dotted key of each setting that is a `PathOrUrl` or a `LocalPath`.

    Args:
      section: the outermost section.
    """
    for prefix, inner in sections_of(section):
        for name, field in inner.model_fields.items():
            if _is_path(field):
                yield f"{prefix}.{name}".removeprefix(".")


def _is_path(field: FieldInfo) -> bool:
    found = [*field.metadata]
    # Of `LocalPath | None` the first type has the metadata.
    for kind in get_args(field.annotation):
        found += getattr(kind, "__metadata__", ())
    converts = (absolute, absolute_local)
    return any(isinstance(each, AfterValidator) and each.func in converts for each in found)
