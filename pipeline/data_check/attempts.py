"""Try what a run would make of the files with some options: layouts, labels and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from components.review_example_gen.classes import Classes, choose_classes
from components.review_example_gen.found_labels import FoundLabels
from core.errors import InputError
from pipeline.data_check.found import FoundLabel
from pipeline.data_check.inspections import Inspections
from pipeline.data_check.sample import sample_of
from preprocessing.labels import SENTIMENT, Labels
from preprocessing.reading.columns import Layout
from preprocessing.reading.detect import Inspection
from preprocessing.reading.files import SourceFile
from preprocessing.reading.labels import NEUTRAL, CollectedLabels, LabelReader, label_scale
from preprocessing.reading.layouts import choose_layouts
from preprocessing.reading.listing import listed
from preprocessing.reading.records import SENTIMENT_TASK, ReadOptions, TaskName

LEFT_OUT, REJECTED = "left out", "rejected"


@dataclass(frozen=True)
class Attempt:
    """What a run would make of files with some options.

    Attributes:
      options: the options.
      layouts: the layout of each file; without the scale of the labels if `error` is about them.
      found: the labels of the sample; None if the files cannot be read.
      classes: the classes; None if there are none.
      error: the error with which a run would end; None if it would read the files.
      is_certain: whether the error does not depend on lines outside of the sample.
      is_complete: whether the labels are those of all lines.
    """

    options: ReadOptions
    layouts: tuple[Layout, ...] = ()
    found: FoundLabels | None = None
    classes: Classes | None = None
    error: InputError | None = None
    is_certain: bool = True
    is_complete: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes; empty if there are none."""
        return self.classes.labels.names if self.classes and not self.error else ()

    def mapped_layouts(self) -> list[Layout]:
        """Return the layouts with the class of each label, as a run reads the files by them."""
        label_map = self.classes.label_map if self.classes else {}
        if not label_map:
            return list(self.layouts)
        return [replace(layout, label_map=label_map) for layout in self.layouts]

    def labels(self) -> tuple[FoundLabel, ...]:
        """Return the labels with their meanings, the most frequent one first."""
        if not self.found:
            return ()
        readers = self._readers()
        totals = sorted(self.found.totals.items(), key=lambda item: -item[1])
        return tuple(FoundLabel(name, n, self._shown(readers, name)) for name, n in totals)

    def meanings(self) -> set[str]:
        """Return the meanings that the labels have: names of classes, LEFT_OUT and REJECTED."""
        readers = self._readers()
        labels = self.found.lines if self.found else {}
        return {meaning for name in labels for meaning in self._meanings(readers, name)}

    def _readers(self) -> list[LabelReader]:
        """Return a reader for each scale of the labels; none if there are no classes.

        The columns of a file, and files, may have labels of different scales.
        """
        found: dict[tuple[object, ...], LabelReader] = {}
        for layout in self.mapped_layouts() if self.names else ():
            if layout.format == "empty":
                continue
            columns = [layout.columns, *layout.alternatives] if layout.columns else [None]
            for name in (one.label if one else None for one in columns):
                scale, _ = label_scale(layout, name)
                found.setdefault((scale, layout.class_names), LabelReader(layout, name))
        return list(found.values())

    def _meanings(self, readers: Sequence[LabelReader], name: str) -> list[str]:
        read = (reader.read(name) for reader in readers)
        meanings = sorted({meaning for meaning in read if meaning is not None})
        shown = [LEFT_OUT if one == NEUTRAL else self.names[one] for one in meanings]
        return shown or [REJECTED]

    def _shown(self, readers: Sequence[LabelReader], name: str) -> str:
        """Return the meanings of a label in the columns that may contain it."""
        return " or ".join(self._meanings(readers, name)) if readers else ""


class Attempts:
    """Attempts with the same files, whose labels are read once.

    Args:
      files: the files.
      max_rejected: the maximum fraction of lines that may be rejected.
      inspections: the results of inspecting the files.
      spans: number of spans in the window; 0 for an input without spans.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        max_rejected: float,
        inspections: Inspections,
        *,
        spans: int = 0,
    ) -> None:
        self._files = files
        self._inspections = inspections
        self._max_rejected = max_rejected
        self._spans = spans
        self._found: dict[tuple[object, ...], tuple[FoundLabels, bool]] = {}

    def attempt(self, options: ReadOptions) -> Attempt:
        """Return what a run would make of the files.

        Args:
          options: the options for reading them.

        Raises:
          OSError: a file cannot be read.
        """
        tried = self._inspections.inspect(self._files, options)
        for item in tried:
            if isinstance(item, InputError):
                return Attempt(options, error=item)
        inspections = [item for item in tried if isinstance(item, Inspection)]
        try:
            layouts = choose_layouts(self._files, inspections, options)
        except InputError as error:
            result = self._with_labels(options, [item.layout for item in inspections])
            return replace(result, error=error)
        result = self._with_labels(options, layouts)
        try:
            return replace(result, classes=self._classes(result))
        except InputError as error:
            are_many = result.found is not None and len(result.found.lines) > CollectedLabels.MAX
            return replace(result, error=error, is_certain=result.is_complete or are_many)

    def with_task(self, options: ReadOptions, task: TaskName) -> Attempt:
        """Return what a run would make of the files with another value of `data.labels`.

        Sentiment requires labels of both classes.

        Args:
          options: the options for reading them.
          task: `sentiment`, `stars` or `each`.

        Raises:
          OSError: a file cannot be read.
        """
        classes = SENTIMENT.names if task == SENTIMENT_TASK else ()
        found = self.attempt(replace(options, task=task, classes=classes, label_map={}))
        if task == SENTIMENT_TASK and not found.error:
            labels = found.labels()
            missing = set(SENTIMENT.names) - found.meanings()
            if missing:
                names = " or ".join(sorted(missing))
                return replace(found, error=InputError(f"no label is {names}"))
            rejected = [label.name for label in labels if label.read_as == REJECTED]
            lost = sum(label.lines for label in labels if label.read_as == REJECTED)
            if lost > self._max_rejected * sum(label.lines for label in labels):
                error = InputError(f"{listed(rejected)} are not known as a sentiment")
                return replace(found, error=error)
        return found

    def _classes(self, result: Attempt) -> Classes:
        if result.options.task == SENTIMENT_TASK or result.found is None:
            return Classes(Labels(result.options.classes), {}, ())
        columns = [layout.columns for layout in result.layouts]
        return choose_classes(result.found, result.options, columns, spans=self._spans)

    def _with_labels(self, options: ReadOptions, layouts: Sequence[Layout]) -> Attempt:
        """Return an attempt with the labels that are read by these layouts."""
        key = tuple((layout.columns, layout.class_names) for layout in layouts)
        if key not in self._found:
            sample = sample_of(self._files, layouts)
            self._found[key] = sample.labels(), not sample.incomplete
        found, is_complete = self._found[key]
        return Attempt(options, tuple(layouts), found, is_complete=is_complete)
