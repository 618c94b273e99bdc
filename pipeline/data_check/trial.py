"""Read the sample with the settings found so far, and settle the problems of labels and lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.line_counts import LineCounts
from core.errors import InputError, UserError
from pipeline.data_check.attempts import REJECTED, Attempt, Attempts
from pipeline.data_check.converted import Converted
from pipeline.data_check.found import Problem
from pipeline.data_check.label_remedies import (
    Remedy,
    leave_out_rare,
    leave_out_rare_of_mapping,
    settle_labels,
)
from pipeline.data_check.reading import Reading, RunInput, read_sample
from pipeline.data_check.settings_file import data_yaml, with_data
from pipeline.inputs import input_base, read_options
from pipeline.named_classes import named_classes
from preprocessing.reading.records import (
    BAD_LABEL,
    EACH_TASK,
    MAP_TASK,
    OTHER_SCALE,
    SENTIMENT_TASK,
    STARS_TASK,
)

_MOST_LOST = 0.1
"""The greatest fraction of lines whose loss is proposed."""


@dataclass(frozen=True)
class Trial:
    """What a run would read with the changes that settle its problems.

    Attributes:
      attempt: how the files are read.
      changes: key in `data` -> value.
      problems: the problems of the labels and the lines.
      reading: the lines; empty if they cannot be read.
    """

    attempt: Attempt
    changes: Mapping[str, Any]
    problems: Sequence[Problem]
    reading: Reading = field(default_factory=Reading)


def try_settings(
    given: RunInput,
    attempts: Attempts,
    attempt: Attempt,
    changes: Mapping[str, Any],
    converted: Converted,
) -> Trial:
    """Read the sample, and settle the problems of its labels and lines.

    Args:
      given: the files, and the settings before the changes.
      attempts: the attempts with the files.
      attempt: the attempt with the changes so far.
      changes: key in `data` -> value, the changes so far.
      converted: the files as the user has them.

    Raises:
      OSError: a file cannot be read.
    """
    if attempt.error and not attempt.is_certain:
        message = f"in the sample: {converted.message(str(attempt.error))}"
        return Trial(attempt, changes, [Problem(message, is_blocking=False)])
    problems: list[Problem] = []
    reading, error = _read(given, attempt)
    is_about_labels = attempt.found is not None and _is_about_labels(attempt, reading)
    # A run ends with the first problem, and the changes that settle it may show another one. The
    # labels are settled once. Each further change allows the loss of more lines, or leaves out
    # classes, so the loop ends.
    while error:
        if is_about_labels:
            remedy = settle_labels(attempts, attempt, converted.message(str(error)))
            is_about_labels = False
        else:
            remedy = _remedy_for_lines(error, given, attempt, reading, converted)
        problems.append(remedy.problem)
        if not remedy.changes:
            break
        changes = {**changes, **remedy.changes}
        given = _with_changes(given, changes, converted)
        attempt = _again(given, attempts, attempt)
        reading, error = _read(given, attempt)
    if attempt.names:
        try:
            named_classes(given.config, attempt.names)
        except UserError as wrong:
            problems.append(Problem(str(wrong)))
    return Trial(attempt, changes, problems, reading)


def _with_changes(given: RunInput, changes: Mapping[str, Any], converted: Converted) -> RunInput:
    """Return the same files with the settings after the changes."""
    base = converted.new_base(input_base(given.config))
    return replace(given, config=with_data(given.config, base, changes))


def _again(given: RunInput, attempts: Attempts, attempt: Attempt) -> Attempt:
    """Return an attempt with the settings of `given` and the columns of an earlier attempt."""
    options = replace(read_options(given.config), columns=attempt.options.columns)
    return attempts.attempt(options)


def _read(given: RunInput, attempt: Attempt) -> tuple[Reading, InputError | None]:
    """Return the lines of the sample, and the error with which a run would end.

    Raises:
      OSError: a file cannot be read.
    """
    if attempt.error:
        return Reading(), attempt.error
    reading = read_sample(given, attempt)
    return reading, reading.error


def _is_about_labels(attempt: Attempt, reading: Reading) -> bool:
    if attempt.error:
        return bool(attempt.found and attempt.found.lines) and not attempt.names
    unusable = reading.counts.unusable
    # A few labels that are not on the scale do not show that the task is another one.
    has_scale = attempt.options.task in (SENTIMENT_TASK, STARS_TASK)
    is_few = unusable.total() <= _MOST_LOST * reading.counts.lines_with_review
    if has_scale and is_few and not unusable[OTHER_SCALE]:
        return False
    about_labels = unusable[BAD_LABEL] + unusable[OTHER_SCALE]
    return about_labels - _without_label(attempt, reading.counts) > unusable.total() / 2


def _remedy_for_lines(
    error: InputError, given: RunInput, attempt: Attempt, reading: Reading, converted: Converted
) -> Remedy:
    """Return the problem of lines that cannot be used, or of classes with too few of them.

    Args:
      error: the error of a run.
      given: the files and the settings of the run.
      attempt: how the files were read.
      reading: the lines of a sample.
      converted: the files as the user has them.
    """
    message = converted.message(str(error))
    if reading.incomplete:
        message = f"in the sample: {message}"
    counts = reading.counts
    lost = max(
        counts.unusable.total() / max(1, counts.lines_with_review),
        counts.lost_bytes / max(1, given.size),
    )
    is_too_much = lost > given.config.data.max_rejected_fraction
    # Labels on another scale fail a run whatever their number is.
    is_other_scale = bool(counts.rejected[OTHER_SCALE])
    if is_too_much and counts.examples["train"] and not is_other_scale:
        accepted = _accept_loss(message, lost, given, attempt, counts)
        if accepted:
            return accepted
    labels = _without_rare_classes(given, attempt, reading)
    # A sample may lack lines of a rare class.
    is_blocking = not reading.incomplete or is_other_scale or is_too_much
    if not labels:
        return Remedy(Problem(message, is_blocking=is_blocking))
    found = {"labels": labels}
    problem = Problem(message, data_yaml(found), is_blocking=is_blocking)
    return Remedy(problem, found if is_blocking else {})


def _accept_loss(
    message: str, lost: float, given: RunInput, attempt: Attempt, counts: LineCounts
) -> Remedy | None:
    """Return the setting that allows the loss of lines; None if too many would be lost.

    Any number of lines may lack a label.

    Args:
      message: the problem.
      lost: the fraction of the lines or bytes that are lost.
      given: the files and the settings of the run.
      attempt: how the files were read.
      counts: the counts of the lines.
    """
    allowed = given.config.data.max_rejected_fraction
    unlabelled = _without_label(attempt, counts)
    others = counts.unusable.total() - unlabelled
    are_few = others <= allowed * counts.lines_with_review and not counts.lost_bytes
    is_unlabelled = bool(unlabelled) and are_few
    if lost > _MOST_LOST and not is_unlabelled:
        return None
    if is_unlabelled:
        message = (
            f"{unlabelled:,} of {counts.lines_with_review:,} lines have no label (or a word "
            "for a missing value, such as NA or None, or -1 in files without other labels, "
            "which only a mapping in data.labels makes a class), more than "
            f"data.max_rejected_fraction ({allowed}) allows"
        )
    # The fraction is rounded up.
    settings = {"max_rejected_fraction": min(1.0, (int(1000 * lost) + 1) / 1000)}
    text = data_yaml(settings)
    return Remedy(Problem(f"{message}; or accept the loss of these lines", text), settings)


def _without_rare_classes(
    given: RunInput, attempt: Attempt, reading: Reading
) -> dict[str, str | None]:
    """Return `data.labels` without the classes that have too few lines; empty if that is no remedy.

    Args:
      given: the files and the settings of the run.
      attempt: how the files were read.
      reading: the lines of a sample.
    """
    mapping = given.config.data.labels
    if attempt.options.task == EACH_TASK:
        return leave_out_rare(attempt, reading.examples_of)
    if attempt.options.task == MAP_TASK and not isinstance(mapping, str):
        return leave_out_rare_of_mapping(attempt, mapping, reading.examples_of)
    return {}


def _without_label(attempt: Attempt, counts: LineCounts) -> int:
    """Return the number of lines whose label is empty, or a word or number for a missing value."""
    missing = {layout.missing for layout in attempt.layouts}
    rejected = [label for label in attempt.labels() if label.read_as == REJECTED]
    others = sum(label.lines for label in rejected if label.name not in missing)
    return max(0, counts.rejected[BAD_LABEL] - others)
