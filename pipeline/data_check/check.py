"""Look at the data before the first run: what a run would read, and everything that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory

from components.line_counts import SPLITS
from components.review_example_gen.inputs import input_folder
from components.review_example_gen.spans import Input
from core.errors import InputError
from pipeline.config import PipelineConfig
from pipeline.data_check.attempts import Attempt, Attempts
from pipeline.data_check.columns import other_texts
from pipeline.data_check.converted import Converted
from pipeline.data_check.few_texts import few_texts
from pipeline.data_check.file_remedies import question, settle_files
from pipeline.data_check.files import found_files
from pipeline.data_check.found import DataCheck, Problem, Task
from pipeline.data_check.inspections import Inspections
from pipeline.data_check.left_out import Settled
from pipeline.data_check.reading import Reading, RunInput
from pipeline.data_check.settings_file import data_yaml, settings_file, with_data, with_sections
from pipeline.data_check.trial import try_settings
from pipeline.inputs import input_base, input_files, left_out_files, read_options
from preprocessing.reading.files import SourceFile
from preprocessing.reading.layouts import describe
from preprocessing.reading.look import read_table
from preprocessing.reading.records import (
    EACH_TASK,
    SENTIMENT_TASK,
    STARS_TASK,
    ReadOptions,
    TaskName,
)

_OTHER_SPLITS = (
    "data.splits: the command gives the files new names, and no globs match the same files there: "
    "run it, and look at the new folder"
)


def check_data(config: PipelineConfig, *, is_own: bool = True) -> DataCheck:
    """Return what a run with these settings would read, and all problems with their remedies.

    Large files are read in part. Neither TensorFlow nor Beam is imported for local files.

    Args:
      config: the settings.
      is_own: whether the settings come from a file of the user, see `settings_file`.

    Raises:
      OSError: a file cannot be read.
    """
    try:
        found = input_files(config)
    except InputError as error:
        base = input_folder(input_base(config))
        return DataCheck(base, problems=(Problem(str(error)),), is_settled=False)
    base, files = found.base, found.files
    with TemporaryDirectory() as scratch:
        converted = Converted(base, files, config.data.max_rejected_fraction, scratch)
        check = _check(config, found, converted, is_own)
    number = converted.number_of_files
    is_complete = check.is_complete and number == len(check.files)
    return replace(check, number_of_files=number, is_complete=is_complete)


def _check(config: PipelineConfig, found: Input, converted: Converted, is_own: bool) -> DataCheck:
    options = read_options(config)
    inspections = Inspections()
    has_spans = bool(found.spans)
    settled = _settle(config, converted, options, inspections, has_spans)
    files, problems, changes = settled.files, list(settled.problems), dict(settled.changes)
    columns = {**options.columns, **changes.get("columns", {})}
    most = config.data.max_rejected_fraction
    attempts = Attempts(files, most, inspections, spans=len(found.spans))
    attempt, reading = Attempt(options), Reading()
    if files:
        attempt = attempts.attempt(replace(options, columns=columns))
        spans = found if has_spans and not converted.changed else None
        trial = try_settings(RunInput(config, files, spans), attempts, attempt, changes, converted)
        attempt, reading, changes = trial.attempt, trial.reading, dict(trial.changes)
        problems += trial.problems
    problems += _text_questions(files, attempt, converted)
    changed = with_data(config, converted.new_base(input_base(config)), changes)
    is_complete = attempt.is_complete and not (reading.incomplete or converted.partial)
    proposal = None
    if attempt.names and is_complete:
        train_texts = reading.counts.examples["train"]
        proposal = few_texts(config, attempt.options.task, len(attempt.names), train_texts)
    if proposal:
        changed = with_sections(changed, proposal.sections)
    blocking = [problem for problem in problems if problem.is_blocking]
    is_settled = all(problem.settings or problem.commands for problem in blocking)
    read_as: tuple[str, ...] = ()
    if attempt.layouts:
        read_as = (*found.describe(), *describe(attempt.mapped_layouts()))
    return DataCheck(
        converted.base,
        is_complete=is_complete,
        left_out=left_out_files(config, found),
        files=found_files(converted, files, attempt, reading, options),
        reading=read_as,
        labels=attempt.labels(),
        task=_task(attempt, converted) if files else None,
        other_tasks=_other_tasks(attempts, attempt, converted),
        splits={split: reading.counts.examples[split] for split in SPLITS},
        counts=reading.counts.sentence() if reading.counts.lines else "",
        texts=reading.texts,
        examples=reading.first_texts,
        notes=tuple(map(converted.message, reading.notes)),
        unused=tuple(map(converted.message, reading.unused)),
        problems=tuple(problems),
        few_texts=proposal.note if proposal else None,
        settings=settings_file(changed, is_own, problems),
        is_settled=is_settled,
    )


def _settle(
    config: PipelineConfig,
    converted: Converted,
    options: ReadOptions,
    inspections: Inspections,
    has_spans: bool,
) -> Settled:
    """Return the files that a run would read, and the problems of the files and of their splits."""
    problems = _conversion(config, converted)
    may_split = not (config.data.splits or has_spans)
    settled = settle_files(converted, options, inspections, may_split=may_split)
    problems += settled.problems
    changes = dict(settled.changes)
    if converted.changed and config.data.splits:
        splits = converted.split_globs(config.data.splits)
        if splits is None:
            problems.append(Problem(_OTHER_SPLITS))
        else:
            changes["splits"] = splits
    return Settled(settled.files, changes, tuple(problems))


def _conversion(config: PipelineConfig, converted: Converted) -> list[Problem]:
    if not converted.changed:
        return []
    commands = converted.commands()
    new_base = {"input_base": converted.new_base(input_base(config))}
    return [Problem(converted.problem(), data_yaml(new_base) if commands else "", commands)]


def _text_questions(
    files: Sequence[SourceFile], attempt: Attempt, converted: Converted
) -> list[Problem]:
    """Return the question of the first file with other columns that are as likely the text."""
    found: list[Problem] = []
    for file, layout in zip(files, attempt.layouts, strict=False):
        if layout.columns is None or layout.chosen.get("text"):
            continue
        table = read_table(file.path, attempt.options, layout)
        texts = other_texts(table, layout.columns) if table else ()
        if len(texts) > 1:
            problem = question("text", texts, is_blocking=False)
            message = f"{converted.message(file.path)}: {problem.message}"
            found.append(replace(problem, message=message))
            break
    return found


def _task(attempt: Attempt, converted: Converted) -> Task:
    problem = converted.message(str(attempt.error)) if attempt.error else ""
    return Task(attempt.options.task, attempt.names, problem)


def _other_tasks(attempts: Attempts, current: Attempt, converted: Converted) -> tuple[Task, ...]:
    if current.found is None:
        return ()
    tasks: list[TaskName] = [SENTIMENT_TASK, STARS_TASK, EACH_TASK]
    others = [task for task in tasks if task != current.options.task]
    return tuple(_task(attempts.with_task(current.options, task), converted) for task in others)
