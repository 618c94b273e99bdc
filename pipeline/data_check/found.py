"""What `amazon-reviews data check` found: one value, which the command shows as text or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from preprocessing.reading.records import TaskName


class Role(str, Enum):
    """What a column of a file is read as, in the order in which the command lists columns."""

    LABEL = "label"
    TITLE = "title"
    TEXT = "text"
    OTHER_LABEL = "label of other records"
    OTHER_TITLE = "title of other records"
    OTHER_TEXT = "text of other records"
    IGNORED = "ignored"


@dataclass(frozen=True)
class FoundColumn:
    """A column of a file: its name, its role, and the value of one of its fields."""

    name: str
    role: Role
    example: str


@dataclass(frozen=True)
class FoundFile:
    """A file of the input.

    Attributes:
      path: its path below `data.input_base`.
      group: the split in `data.splits`, or `all`.
      size: its size in bytes, as it is stored.
      format: such as `CSV separated by semicolons`; empty if it is unknown.
      compression: `bz2`, `gzip` or `zstd`; empty for a plain file.
      encoding: the encoding of its text; empty for Parquet.
      columns: its columns; empty for a format without columns.
      lines: number of its lines (CSV: records, Parquet: rows) that were read.
      is_complete: whether these are all of its lines.
    """

    path: str
    group: str
    size: int
    format: str = ""
    compression: str = ""
    encoding: str = ""
    columns: tuple[FoundColumn, ...] = ()
    lines: int = 0
    is_complete: bool = False


@dataclass(frozen=True)
class FoundLabel:
    """A label: the number of its lines, and its class, `left out` or `rejected`."""

    name: str
    lines: int
    read_as: str


@dataclass(frozen=True)
class Task:
    """A value of `data.labels`, and what it makes of the labels.

    Attributes:
      name: the name of the task.
      classes: the names of the classes; empty if the task is not possible.
      problem: the reason why the task is not possible; empty if it is.
    """

    name: TaskName
    classes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Choice:
    """A possible answer to a question: lines of YAML, and what they mean."""

    settings: str
    meaning: str


@dataclass(frozen=True)
class Problem:
    """A problem or a question, and its remedy.

    Attributes:
      message: the problem in one line.
      settings: lines of YAML that settle it; empty if no setting does.
      commands: commands for a shell that settle it.
      choices: all answers, if there are several; the first one is `settings`.
      is_blocking: whether a run would fail because of it.
    """

    message: str
    settings: str = ""
    commands: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    is_blocking: bool = True


@dataclass(frozen=True)
class Texts:
    """Properties of the texts that were read.

    Attributes:
      number: number of texts.
      words: the least, the median, the 95th percentile and the greatest number of words.
      scripts: writing system -> fraction of the texts that are mostly written in it.
      duplicates: number of texts that repeat an earlier one.
      contradictions: number of texts that also occur with another class.
    """

    number: int = 0
    words: tuple[int, int, int, int] = (0, 0, 0, 0)
    scripts: Mapping[str, float] = field(default_factory=dict)
    duplicates: int = 0
    contradictions: int = 0


@dataclass(frozen=True)
class Example:
    """A text as a model gets it, with its class."""

    label: str
    text: str


@dataclass(frozen=True)
class DataCheck:
    """The result of a check of an input.

    If the settings do not suffice for a run, the labels, texts and splits are those with
    `settings`, as far as these settle the problems.

    Attributes:
      base: the folder or prefix of the files.
      is_complete: whether all lines were read. If not, all numbers of lines are those of a sample.
      number_of_files: number of files of the input.
      files: the files; some of them if there are very many.
      left_out: a line with the files that are not read because of their names; empty without any.
      reading: a line for each way in which files are read, as a run prints it.
      labels: the labels, the most frequent one first.
      task: the task; None if the labels cannot be read.
      other_tasks: other values of `data.labels`.
      splits: split -> number of its Examples.
      counts: the sentence about the lines that a run prints.
      texts: properties of the texts.
      examples: some texts.
      notes: what a run would print about the classes.
      unused: what a run would print about files without a usable line.
      problems: all problems and questions.
      few_texts: the note about too few texts for the default training; None if it does not apply.
      settings: the content of a settings file, with which a run would start if `is_settled`.
      is_settled: whether `settings` and the commands settle all problems.
    """

    base: str
    is_complete: bool = False
    number_of_files: int = 0
    files: tuple[FoundFile, ...] = ()
    left_out: str = ""
    reading: tuple[str, ...] = ()
    labels: tuple[FoundLabel, ...] = ()
    task: Task | None = None
    other_tasks: tuple[Task, ...] = ()
    splits: Mapping[str, int] = field(default_factory=dict)
    counts: str = ""
    texts: Texts = Texts()
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    few_texts: Problem | None = None
    settings: str = ""
    is_settled: bool = True

    @property
    def starts(self) -> bool:
        """Whether a run with the given settings would read these files."""
        return not any(problem.is_blocking for problem in self.problems)
