"""The setting `data.labels`: which labels of the files become which classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from preprocessing.labels import SENTIMENT, plain_name
from preprocessing.reading.labels import YAML_WORDS, canonical, label_name, same_numbers
from preprocessing.reading.records import (
    MAP_TASK,
    SENTIMENT_TASK,
    ReadOptions,
    TaskName,
    printable,
    text_problem,
)

Task = Literal["stars", "each"]
"""The values of `data.labels` that are a single word."""

_SENTIMENT = {"0": SENTIMENT.names[0], "1": SENTIMENT.names[1]} | {
    name: name for name in SENTIMENT.names
}
"""Name of a class in a mapping -> the class of sentiment. Any other name is a class of its own."""


def parse_labels(labels: Any) -> Any:
    """Return a value of `data.labels` in its canonical form.

    Args:
      labels: a value of YAML.

    Returns:
      A `Task`; or label as `labels.canonical` returns it -> name of its class, or None.

    Raises:
      ValueError: the value is neither a task nor a mapping, or it is a mapping with less than two
        classes, with a label twice, or with something else than a label or the name of a class.
    """
    if isinstance(labels, str) and labels in get_args(Task):
        return labels
    if not isinstance(labels, Mapping):
        raise ValueError(
            "requires stars, each, or a mapping from each label to a class, such as "
            "{bad: negative, good: positive}"
        )
    classes: dict[str, str | None] = {}
    for label, given in labels.items():
        name = None if given is None else _class_name(label, given)
        for text in YAML_WORDS[label] if isinstance(label, bool) else [_label(label)]:
            if text in classes:
                problem = "there twice" if classes[text] == name else "mapped to two classes"
                raise ValueError(
                    f"the label {printable(text)} is {problem}; keep one of them (labels are "
                    "compared without regard to case, and 4, 4.0 and '4' are one label)"
                )
            classes[text] = name
    names = dict.fromkeys(name for name in classes.values() if name is not None)
    if set(names) <= set(_SENTIMENT):
        classes = {label: _SENTIMENT.get(name or "") for label, name in classes.items()}
        names = dict.fromkeys(name for name in classes.values() if name is not None)
    if classes and len(names) < 2:
        only = f"the only class is {', '.join(names)}" if names else "no label has a class"
        raise ValueError(f"{only}; map labels to two or more classes")
    _refuse_equal_names(list(names))
    return classes


def task_options(labels: Task | Mapping[str, str | None]) -> ReadOptions:
    """Return the options of the reader with the `task`, `classes` and `label_map` of a setting.

    The other options have their default values.

    Args:
      labels: a result of `parse_labels`.
    """
    if isinstance(labels, str):
        return ReadOptions(task=labels, classes=())
    if not labels:
        return ReadOptions()
    named = dict.fromkeys(name for name in labels.values() if name is not None)
    is_sentiment = set(named) <= set(SENTIMENT.names)
    classes = SENTIMENT.names if is_sentiment else tuple(named)
    label_map = {
        label: None if name is None else classes.index(name) for label, name in labels.items()
    }
    task: TaskName = SENTIMENT_TASK if is_sentiment else MAP_TASK
    return ReadOptions(task=task, classes=classes, label_map=label_map)


def _label(given: Any) -> str:
    label = canonical(given)
    if not label and isinstance(given, str):
        raise ValueError(
            "a label is empty or has more than 10,000 characters; name it as in the files"
        )
    if not label:
        raise ValueError(f"{printable(given)} is not a label; write it in quotation marks")
    return label


def _class_name(label: Any, given: Any) -> str:
    """Return the name of a class, which YAML may have read as a number.

    Raises:
      ValueError: the value is no name.
    """
    where = f"the class of the label {printable(label)}"
    if isinstance(given, bool):
        raise ValueError(
            f"{where} is {str(given).lower()}, as which YAML reads yes, no, on and off; write it "
            "in quotation marks"
        )
    text = given if isinstance(given, str) else label_name(given)
    if text is None or text_problem(text):
        raise ValueError(f"{where} is {printable(given)}; write one name, or null to leave it out")
    name = plain_name(text)
    if not name:
        raise ValueError(f"{where} is empty; write a name, or null to leave it out")
    return name


def _refuse_equal_names(names: list[str]) -> None:
    """Check that no two names of classes differ only in case, or are the same number.

    Raises:
      ValueError: two names do, which is a typing error.
    """
    for one, other, *_ in same_numbers(names):
        raise ValueError(
            f"the classes {printable(one)} and {printable(other)} are the same number; write one "
            "name, or two different ones"
        )
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(
                f"the classes {printable(other)} and {printable(name)} differ only in case; write "
                "one name, or two different ones"
            )
