"""ReviewExampleGen: one Beam pipeline from raw files to split, sharded Examples."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from absl import logging
from tfx import types
from tfx.components.example_gen.utils import SPAN_PROPERTY_NAME, VERSION_PROPERTY_NAME
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.dsl.io import fileio
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ExecutionParameter
from tfx.types.standard_component_specs import EXAMPLES_KEY, INPUT_BASE_KEY

from components.artifacts import RejectedLines
from components.beam import LocalBeamExecutor
from components.examples import publish, write_spans
from components.line_counts import SPLITS, LineCounts, RejectedLine, joined_lines
from components.properties import (
    CLASSES_PROPERTY,
    CODE_KEY,
    NEWEST_SPAN_PROPERTY,
    READING_PROPERTY,
    UNUSED_PROPERTY,
)
from components.rejected_lines import read_lines, write_counts, write_lines
from components.review_example_gen.acceptance import check_counts
from components.review_example_gen.classes import Classes, check_classes, choose_classes
from components.review_example_gen.inputs import (
    ONLY_SAMPLE,
    OPTIONS_KEY,
    SAMPLE,
    SPAN_KEY,
    Options,
    input_folder,
)
from components.review_example_gen.read_spans import SpanReader
from components.review_example_gen.read_unit import UnitResult
from components.review_example_gen.read_whole import WholeReader
from components.review_example_gen.reader import Reader
from components.review_example_gen.spans import (
    Input,
    check_spans,
    find_again,
    find_input,
    left_out,
)
from components.review_example_gen.splits import named_splits
from components.review_example_gen.units import Source, lines_before
from core.errors import InputError
from core.storage import is_url
from preprocessing.labels import Labels, write_labels
from preprocessing.reading.files import FILES_AT_ONCE, SourceFile, fingerprint, select_same_paths
from preprocessing.reading.layouts import decide_layouts, describe, input_columns, input_scale
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.records import (
    HARMLESS,
    SENTIMENT_TASK,
    ReadOptions,
    unused_file,
)

REJECTED_KEY = "rejected"

_FILE_PREFIX = "data_tfrecord"
_SHOWN = 5


class ReviewExampleGenExecutor(LocalBeamExecutor):
    """The executor that reads review files, and writes Examples, rejected lines and counts.

    `Do` raises an InputError if the files cannot be read, too many of their lines are unusable, no
    line is left for training, the labels are no classes of the task, the train split lacks a class,
    or a file changes during the run.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        self._log_startup(input_dict, output_dict, exec_properties)
        options = Options.model_validate_json(exec_properties[OPTIONS_KEY])
        given = exec_properties[INPUT_BASE_KEY]
        # The UI of a cluster accepts any value of a parameter.
        if options.reads_sample and given != SAMPLE:
            raise InputError(ONLY_SAMPLE)
        found = find_input(
            input_folder(given),
            options.patterns,
            options.window,
            exec_properties[SPAN_KEY],
        )
        base, files = found.base, found.files
        # The fingerprint in the options is a part of the cache key. In a bucket it contains the
        # times of the objects, so no later content has it again, and the cache cannot reuse these
        # Examples for other content. There it is enough to compare the fingerprints before and
        # after the reading.
        is_known = options.input_fingerprint and not is_url(base)
        key = options.input_fingerprint if is_known else fingerprint(base, files)
        [examples] = output_dict[EXAMPLES_KEY]
        [rejected] = output_dict[REJECTED_KEY]
        scratch = os.path.join(examples.uri, "unpublished")
        fileio.makedirs(scratch)
        fileio.makedirs(rejected.uri)

        not_read = left_out(found, options.patterns)
        if not_read:
            logging.info("Not read: %s", not_read)
        code = str(exec_properties.get(CODE_KEY))
        reader = self._make_reader(found, options, code, scratch)
        sources = _cut(files, options.read)
        classes = _find_classes(sources, options.read, reader, len(found.spans))
        sources = _with_label_map(sources, classes)
        layouts = {source.piece.path: source.piece.layout for source in sources}
        lines = [*found.describe(), *describe(layouts.values())]
        rejected.set_string_custom_property(READING_PROPERTY, "\n".join(lines))
        newest = found.spans[-1].name if found.spans else ""
        rejected.set_string_custom_property(NEWEST_SPAN_PROPERTY, newest)
        done = reader.read(sources, options.max_examples)
        again = select_same_paths(files, find_again(found, options.patterns))
        if fingerprint(base, again) != key:
            # Otherwise a later run on the earlier content would reuse these Examples.
            raise InputError(
                f"data.input_base: a file in {base} changed after the start of the run; run again"
            )
        _write_examples(examples, found, done, reader.files(done))
        scale = input_scale(layouts.values())
        columns = input_columns(layouts.values())
        labels = dataclasses.replace(classes.labels, label_scale=scale, columns=columns)
        write_labels(examples.uri, labels)
        write_lines(rejected.uri, _rejected_lines(done))
        fileio.rmtree(scratch)
        by_file = _counts_by_file(done)
        counts = sum(by_file.values(), LineCounts())
        _write_counts(rejected, by_file, counts)
        first = functools.partial(_first_rejected, rejected.uri)
        check_spans(found, by_file)
        check_counts(counts, by_file, found.size, options.max_rejected_fraction, first)
        notes = classes.notes
        if options.read.task != SENTIMENT_TASK:
            over, spans = counts.over_max_examples, len(found.spans)
            notes += _check_classes(classes, sources, done, over, spans)
        for line in notes:
            logging.info("Classes: %s", line)
        rejected.set_string_custom_property(CLASSES_PROPERTY, "\n".join(notes))
        reader.remove_old()

    def _make_reader(self, found: Input, options: Options, code: str, scratch: str) -> Reader:
        """Return the reader of an input. A window of spans is read span by span."""
        fractions = options.split_fractions
        if len(found.spans) > 1:
            return SpanReader(
                found, options.span_cache, code, self._make_beam_pipeline, scratch, fractions
            )
        return WholeReader(self._make_beam_pipeline, scratch, found.size, fractions)


class ReviewExampleGenSpec(types.ComponentSpec):
    """The outputs and the parameters of ReviewExampleGen."""

    PARAMETERS = {
        INPUT_BASE_KEY: ExecutionParameter(type=str),
        SPAN_KEY: ExecutionParameter(type=str),
        OPTIONS_KEY: ExecutionParameter(type=str),
    }
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples),
        REJECTED_KEY: ChannelParameter(type=RejectedLines),
    }


class ReviewExampleGen(base_beam_component.BaseBeamComponent):
    """The component that turns raw review files into Examples and rejected lines.

    The outputs are `examples`, with the splits train, eval and test, and `rejected`.

    Args:
      input_base: the folder or gs:// prefix of the raw files, `sample` for the reviews of this
        package, or a parameter of the run.
      span: the newest span that is read, see `data.span`, or a parameter of the run.
      options: the files, the options of their reader, and the limits.
    """

    SPEC_CLASS = ReviewExampleGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(ReviewExampleGenExecutor)

    def __init__(
        self, input_base: str | RuntimeParameter, span: str | RuntimeParameter, options: Options
    ):
        spec = ReviewExampleGenSpec(
            input_base=input_base,
            span=span,
            options=options.model_dump_json(),
            examples=types.Channel(type=standard_artifacts.Examples),
            rejected=types.Channel(type=RejectedLines),
        )
        super().__init__(spec=spec)


def _write_examples(
    examples: types.Artifact,
    found: Input,
    done: Sequence[UnitResult],
    spans: Mapping[str, int],
) -> None:
    """Move the files of Examples to the artifact, and set the properties of TFX's ExampleGen.

    Args:
      examples: the output.
      found: the input, whose newest span and its version become properties.
      done: the results of the units.
      spans: path of a file of Examples -> the number of its span; empty without spans.
    """
    shards: dict[str, list[tuple[str, int]]] = {split: [] for split in SPLITS}
    for unit in done:
        for shard in unit.shards:
            shards[shard.split].append((shard.path, shard.examples))
    moved = publish(examples, _FILE_PREFIX, shards)
    if spans:
        write_spans(examples.uri, {moved[path]: span for path, span in spans.items()})
    if found.spans:
        newest = found.spans[-1]
        examples.set_int_custom_property(SPAN_PROPERTY_NAME, newest.number)
        if newest.version is not None:
            examples.set_int_custom_property(VERSION_PROPERTY_NAME, newest.version)


def _counts_by_file(done: Sequence[UnitResult]) -> dict[str, LineCounts]:
    """Return path of an input file -> the counts of its lines."""
    by_file: dict[str, LineCounts] = {}
    for unit in done:
        for path, of_file in unit.counts.items():
            by_file[path] = by_file.get(path, LineCounts()) + of_file
    return by_file


def _write_counts(
    rejected: types.Artifact, by_file: Mapping[str, LineCounts], counts: LineCounts
) -> None:
    """Write the counts of all lines to the artifact and to its properties.

    Args:
      rejected: the output, which has the rejected lines already.
      by_file: path of an input file -> the counts of its lines.
      counts: their sum.
    """
    logging.info("Lines read: %s", counts.to_file())
    write_counts(rejected.uri, by_file, counts)
    for name, count in counts.to_properties().items():
        rejected.set_int_custom_property(name, count)
    unused = _unused_files(by_file, rejected.uri)
    for line in unused:
        logging.warning(line)
    rejected.set_string_custom_property(UNUSED_PROPERTY, "\n".join(unused))


def _check_classes(
    classes: Classes,
    sources: Sequence[Source],
    done: Sequence[UnitResult],
    over_max_examples: int,
    spans: int,
) -> tuple[str, ...]:
    """Return lines about the Examples of each class, see `check_classes`.

    Args:
      classes: the classes.
      sources: the pieces of the files.
      done: the results of the units.
      over_max_examples: see `check_classes`.
      spans: see `choose_classes`.

    Raises:
      InputError: a class lacks Examples.
    """
    examples_of = {
        split: sum((unit.classes[split] for unit in done), Counter[int]()) for split in SPLITS
    }
    named = named_splits(sources)
    return check_classes(classes.labels, examples_of, named, over_max_examples, spans=spans)


def _find_classes(sources: list[Source], read: ReadOptions, reader: Reader, spans: int) -> Classes:
    """Return the classes. Unless the task is sentiment, all files are read for them.

    Args:
      sources: the pieces of the files.
      read: the options for reading them.
      reader: the reader of the input.
      spans: see `choose_classes`.

    Raises:
      InputError: the labels of the input are no classes.
    """
    if read.task == SENTIMENT_TASK:
        return Classes(Labels(read.classes), {}, ())
    columns = [source.piece.layout.columns for source in sources]
    return choose_classes(reader.labels(sources), read, columns, spans=spans)


def _cut(files: list[SourceFile], options: ReadOptions) -> list[Source]:
    layouts = decide_layouts(files, options)
    # In threads, because opening a remote file takes tens of milliseconds.
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        cut = pool.map(cut_file, (file.path for file in files), layouts)
        return [
            Source(file.group, piece)
            for file, pieces in zip(files, cut, strict=True)
            for piece in pieces
        ]


def _with_label_map(sources: list[Source], classes: Classes) -> list[Source]:
    """Return the pieces with layouts that contain the class of each label."""
    if not classes.label_map:
        return sources
    layouts = {
        piece.path: dataclasses.replace(piece.layout, label_map=classes.label_map)
        for _, piece in sources
    }
    return [Source(group, piece._replace(layout=layouts[piece.path])) for group, piece in sources]


def _rejected_lines(done: list[UnitResult]) -> Iterator[RejectedLine]:
    """Yield the rejected lines in the order of the units, with their positions in the files."""
    before = lines_before(piece for unit in done for piece in unit.pieces)
    for unit in done:
        with fileio.open(unit.rejected) as source:
            for line in source:
                file, piece, position, reason, detail = json.loads(line)
                yield RejectedLine(file, before[file, piece] + position, reason, detail)


def _unused_files(by_file: Mapping[str, LineCounts], rejected_uri: str) -> list[str]:
    """Return a line for each of the first files without a usable line, and one for the others."""
    unused = [path for path, counts in sorted(by_file.items()) if counts.no_line_usable]
    shown = unused[:_SHOWN]
    if not shown:
        return []
    first: dict[str, str] = {}
    for line in read_lines(rejected_uri):
        if line.file in shown and line.reason not in HARMLESS:
            first.setdefault(line.file, line.detail)
            if len(first) == len(shown):
                break
    found = [unused_file(path, by_file[path].rejected, first[path]) for path in shown]
    more = len(unused) - len(shown)
    return [*found, f"further files without a usable line: {more}"] if more else found


def _first_rejected(rejected_uri: str, reasons: Collection[str]) -> str:
    """Return the first lines that were rejected for one of `reasons`, by file and position.

    The required memory does not depend on the number of rejected lines.
    """
    found = (line for line in read_lines(rejected_uri) if line.reason in reasons)
    return joined_lines(heapq.nsmallest(_SHOWN, found, key=lambda line: (line.file, line.position)))
