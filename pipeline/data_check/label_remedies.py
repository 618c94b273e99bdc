"""Find values of `data.labels` for the files, and try each one with the reader of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from components.line_counts import SPLITS
from pipeline.data_check.attempts import Attempt, Attempts
from pipeline.data_check.found import Choice, Problem
from pipeline.data_check.settings_file import data_yaml
from pipeline.label_setting import parse_labels, task_options
from preprocessing.reading.files import HELD_OUT
from preprocessing.reading.labels import NEUTRAL, label_name, numbers_with_names
from preprocessing.reading.listing import joined
from preprocessing.reading.records import EACH_TASK, SENTIMENT_TASK, STARS_TASK, ReadOptions

_SHOWN = 4
"""Maximum number of names in a message."""
_BAD = {
    *("bad", "negative", "neg", "no", "false", "dislike", "unsatisfied", "down"),
    *("not recommended", "schlecht", "negativ", "negatif", "négatif", "negativo", "negativa"),
    *("negatief", "negatywny", "negatywna", "olumsuz", "негативный", "негатив", "отрицательный"),
    *("tiêu cực", "سلبي", "负面", "負面", "消极", "差评", "ネガティブ", "부정"),
}
_GOOD = {
    *("good", "positive", "pos", "yes", "true", "like", "satisfied", "up"),
    *("recommended", "gut", "positiv", "positif", "positivo", "positiva"),
    *("positief", "pozytywny", "pozytywna", "olumlu", "позитивный", "позитив", "положительный"),
    *("tích cực", "إيجابي", "ايجابي", "正面", "积极", "好评", "ポジティブ", "긍정"),
}
_NEITHER = {
    *("neutral", "neu", "offered", "unoffered", "mixed", "average", "ok", "", "unsup", "unlabeled"),
    *("unlabelled", "irrelevant", "unknown", "unrated", "none", "n/a", "other", "unclear"),
    *("unsure", "netral", "neutre", "neutro", "neutra", "neutraal", "neutralny", "neutralna"),
    *("nötr", "tarafsız", "нейтральный", "нейтрально", "trung tính", "محايد", "中性", "中评"),
    *("中立", "ニュートラル", "중립"),
}
"""Words whose sentiment is proposed, and those that are left out; the user decides."""


class Remedy(NamedTuple):
    """A problem, and the changes of `data` that settle it, key -> value; empty if none does."""

    problem: Problem
    changes: Mapping[str, Any] = {}


def settle_labels(attempts: Attempts, current: Attempt, message: str) -> Remedy:
    """Find a value of `data.labels` with which the labels are classes.

    Args:
      attempts: the attempts with the files.
      current: the attempt with the settings, which cannot be used.
      message: the problem.

    Raises:
      OSError: a file cannot be read.
    """
    options = current.options
    choices: list[tuple[Any, str]] = []
    names = [label.name for label in current.labels()]
    corrected = _corrected_mapping(attempts, options, names)
    if corrected:
        choices.append((corrected, "the classes of data.labels; null leaves a label out"))
    in_train = _without_held_out(attempts, current)
    if in_train:
        choices.append((in_train, "the classes of the train files; null leaves a label out"))
    polarity = _polarity(names)
    if polarity:
        choices.append((polarity, "a guess at the sentiment of these words: 1 is positive"))
    numbers = _named_numbers(current)
    if numbers:
        choices.append((numbers, "the names that one of the files has for these numbers"))
    stars = attempts.with_task(options, STARS_TASK)
    each = attempts.with_task(options, EACH_TASK)
    sentiment = attempts.with_task(options, SENTIMENT_TASK)
    has_names = any(layout.class_names for layout in each.layouts)
    if not stars.error and not has_names:
        choices.append(
            (STARS_TASK, f"{len(stars.names)} ordered classes: {joined(stars.names, _SHOWN)}")
        )
    if each.error:
        if not each.is_certain:
            choices.append(
                (EACH_TASK, "more classes than the one at the beginning of a sorted file")
            )
    elif each.names == stars.names and not has_names:
        choices.append((EACH_TASK, "the same classes without an order, such as numbers of topics"))
    elif not (has_names and numbers):
        choices.append((EACH_TASK, f"{len(each.names)} classes: {joined(each.names, _SHOWN)}"))
    if not sentiment.error and options.task != SENTIMENT_TASK:
        choices.append(({}, "negative and positive"))
    if not choices:
        in_train = _without_held_out(attempts, each)
        if in_train:
            choices.append((in_train, "the classes of the train files; null leaves a label out"))
    shown = tuple(Choice(data_yaml({"labels": value}), text) for value, text in choices)
    if not choices:
        reasons = [] if options.task == EACH_TASK else [f"{stars.error}", f"{each.error}"]
        return Remedy(Problem("; ".join(dict.fromkeys([message, *reasons]))))
    problem = Problem(message, shown[0].settings, choices=shown)
    return Remedy(problem, {"labels": choices[0][0]})


def _corrected_mapping(
    attempts: Attempts, options: ReadOptions, names: Sequence[str]
) -> dict[str, str | None]:
    """Return the mapping of `data.labels` for the labels of the files.

    It leaves out the labels that the mapping does not name. It lacks those that no line has, if
    they are an error. It is empty if there is no mapping, or if the labels are no classes with it.

    Args:
      attempts: the attempts with the files.
      options: the options with the mapping.
      names: the labels of the files.
    """
    present = dict.fromkeys(name.lower() for name in names)
    used = [label for label in options.label_map if label in present]
    # The order of the classes is that of the mapping.
    for labels in ([*options.label_map, *present], [*used, *present]) if used else ():
        indices = {label: options.label_map.get(label) for label in labels}
        found = {
            label: None if index is None else options.classes[index]
            for label, index in indices.items()
        }
        if len({name for name in found.values() if name}) < 2:
            continue
        if not attempts.attempt(_with_mapping(options, found)).error:
            return found
    return {}


def _without_held_out(attempts: Attempts, current: Attempt) -> dict[str, str | None]:
    """Return the mapping of `data.labels` that leaves out labels of only eval and test files.

    It is empty if the task is another one than a class for each label, if the labels of the train
    files are no classes either, or if no mapping has these classes.

    Args:
      attempts: the attempts with the files.
      current: the attempt with the settings.
    """
    if current.options.task != EACH_TASK or current.found is None:
        return {}
    if any(layout.class_names for layout in current.layouts):
        return {}  # a mapping applies to the numbers
    names = current.found.lines
    kept = [name for name, groups in names.items() if not set(groups) <= set(HELD_OUT)]
    # A mapping does not distinguish labels that differ only in case.
    if not 1 < len(kept) < len(names) or len({name.lower() for name in names}) < len(names):
        return {}
    found = {name: name if name in kept else None for name in names}
    if not _is_allowed(found):
        return {}
    options = _with_mapping(current.options, parse_labels(found))
    return {} if attempts.attempt(options).error else found


def _with_mapping(options: ReadOptions, labels: Mapping[str, str | None]) -> ReadOptions:
    """Return options with a mapping as `data.labels`.

    Args:
      options: the options.
      labels: the mapping, see `task_options`.
    """
    mapped = task_options(labels)
    return replace(options, task=mapped.task, classes=mapped.classes, label_map=mapped.label_map)


def _is_allowed(labels: Mapping[str, str | None]) -> bool:
    """Return whether `data.labels` may be a mapping.

    With `each`, `2.5` and `2.50` are two classes, and so are `1` and `positive`.
    """
    try:
        parse_labels(labels)
    except ValueError:
        return False
    return True


def _polarity(labels: Sequence[str]) -> dict[str, int | None]:
    """Return the sentiment of labels that are known words; empty if one is not."""
    lower = [label.lower() for label in labels]
    has_both = bool(_BAD.intersection(lower)) and bool(_GOOD.intersection(lower))
    if not has_both or not set(lower) <= _BAD | _GOOD | _NEITHER:
        return {}
    ordered = sorted(lower, key=lambda label: (label in _GOOD, label in _NEITHER))
    return {
        label: None if label in _NEITHER else int(label in _GOOD)
        for label in dict.fromkeys(ordered)
    }


def _named_numbers(attempt: Attempt) -> dict[str, int | None]:
    """Return the sentiment of the numbers that only some of the files have names for, or nothing.

    Args:
      attempt: an attempt whose labels have no certain meaning.
    """
    named = {layout.class_names for layout in attempt.layouts if layout.columns}
    if attempt.options.task != SENTIMENT_TASK or len(named) != 2 or () not in named:
        return {}
    meanings = numbers_with_names(max(named))
    return {number: None if one == NEUTRAL else one for number, one in meanings.items()}


def leave_out_rare(
    attempt: Attempt, examples_of: Mapping[str, Mapping[int, int]]
) -> dict[str, str | None]:
    """Return `data.labels` that leaves out the classes with few lines, or with none for training.

    It is empty if it would leave out no class, if fewer than two would be left, or if no mapping
    has these classes. A mapping does not distinguish labels that differ only in case. They become
    one class, with the name of the most frequent one.

    Args:
      attempt: an attempt with a class for each label.
      examples_of: split -> index of a class -> number of its lines.
    """
    numbered = {layout.class_names for layout in attempt.layouts}
    if len(numbered) > 1:
        return {}  # a mapping applies to the numbers of one file and to the names of another one
    alike: dict[str, list[int]] = {}
    for index, name in enumerate(attempt.names):
        alike.setdefault(name.lower(), []).append(index)
    found: dict[str, str | None] = {}
    for indices in alike.values():
        first = max(indices, key=lambda index: _lines([index], examples_of))
        is_kept = _are_enough(indices, examples_of)
        for index in indices if any(numbered) else [first]:
            for label in _labels_in_file(attempt, index):
                found[label] = attempt.names[first] if is_kept else None
    kept = {name for name in found.values() if name}
    # If all classes are kept, the problem is another one.
    return found if 1 < len(kept) < len(attempt.names) and _is_allowed(found) else {}


def leave_out_rare_of_mapping(
    attempt: Attempt,
    labels: Mapping[str, str | None],
    examples_of: Mapping[str, Mapping[int, int]],
) -> dict[str, str | None]:
    """Return a mapping without the classes with few lines, or with none for training.

    It is empty if it would leave out no class, or if fewer than two would be left.

    Args:
      attempt: an attempt with the mapping.
      labels: the mapping: label -> name of its class.
      examples_of: split -> index of a class -> number of its lines.
    """
    kept = {name for index, name in enumerate(attempt.names) if _are_enough([index], examples_of)}
    if not 1 < len(kept) < len(attempt.names):
        return {}
    return {label: name if name in kept else None for label, name in labels.items()}


def _are_enough(classes: Sequence[int], examples_of: Mapping[str, Mapping[int, int]]) -> bool:
    """Return whether classes have together a line for each split, and one of them for training."""
    in_train = examples_of.get("train", {})
    has_lines = _lines(classes, examples_of) >= len(SPLITS)
    return has_lines and any(in_train.get(index) for index in classes)


def _lines(classes: Sequence[int], examples_of: Mapping[str, Mapping[int, int]]) -> int:
    """Return the number of lines of classes in all splits."""
    return sum(of.get(index, 0) for of in examples_of.values() for index in classes)


def _labels_in_file(attempt: Attempt, index: int) -> list[str]:
    """Return the labels of a class as a mapping names them: its name, or its numbers in the files.

    Names in a file such as `True` and `true` are those of one class.
    """
    name = attempt.names[index]
    names = attempt.layouts[0].class_names
    if not names:
        return [name]
    return [str(number) for number, one in enumerate(names) if label_name(one) == name]
