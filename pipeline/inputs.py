"""The input files of a configuration, and the options of ReviewExampleGen."""

from __future__ import annotations

import os
from dataclasses import replace

from components.review_example_gen.inputs import SAMPLE, Options, input_folder
from components.review_example_gen.spans import Input, find_input, left_out
from pipeline.config import PipelineConfig
from pipeline.label_setting import task_options
from pipeline.nodes import EXAMPLE_GEN
from preprocessing.reading.files import ALL, fingerprint
from preprocessing.reading.globs import EVERYTHING
from preprocessing.reading.records import ReadOptions
from preprocessing.reading.span_pattern import parse_pattern

_SAMPLE_FILES = {"reviews": "reviews.ft.txt", "stars": "stars.csv"}
"""Value of `data.sample` -> its file in `sample_data`."""


def input_base(config: PipelineConfig) -> str:
    """Return the parameter `input_base` of ReviewExampleGen: `data.input_base`, or SAMPLE."""
    return config.data.input_base or SAMPLE


def input_files(config: PipelineConfig, base: str | None = None, span: str | None = None) -> Input:
    """Return the input files, see `find_input`.

    Args:
      config: the settings.
      base: the folder of the files; None: `data.input_base`.
      span: the newest span; None: `data.span`.

    Raises:
      InputError: a group or a span has no files, or the folder cannot be listed.
    """
    data = config.data
    folder = input_folder(base or input_base(config))
    return find_input(folder, _patterns(config), data.window, span or data.span)


def has_spans(config: PipelineConfig) -> bool:
    """Return whether `data.input_base` has placeholders for spans.

    Args:
      config: the settings.
    """
    return parse_pattern(input_base(config)) is not None


def left_out_files(config: PipelineConfig, found: Input) -> str:
    """Return a line with the files that a run does not read for their names, see `left_out`.

    Args:
      config: the settings.
      found: the result of `input_files`.

    Raises:
      InputError: a folder cannot be listed.
    """
    return left_out(found, _patterns(config))


def input_fingerprint(
    config: PipelineConfig, base: str | None = None, span: str | None = None
) -> str:
    """Return the `fingerprint` of `input_files`.

    Args:
      config: the settings.
      base: the folder of the files; None: `data.input_base`.
      span: the newest span; None: `data.span`.

    Raises:
      InputError: a group or a span has no files, or a file cannot be read.
    """
    found = input_files(config, base, span)
    return fingerprint(found.base, found.files)


def example_gen_options(config: PipelineConfig, input_fingerprint: str) -> Options:
    """Return the parameter `options` of ReviewExampleGen.

    Args:
      config: the settings.
      input_fingerprint: the fingerprint of the input; empty if it is unknown.
    """
    return Options(
        patterns=_patterns(config),
        reads_sample=config.data.input_base is None,
        read=read_options(config),
        window=config.data.window,
        split_fractions=config.data.split_fractions,
        max_examples={str(split): count for split, count in config.data.max_examples.items()},
        max_rejected_fraction=config.data.max_rejected_fraction,
        span_cache=span_cache(config, EXAMPLE_GEN),
        input_fingerprint=input_fingerprint,
    )


def read_options(config: PipelineConfig) -> ReadOptions:
    """Return the options of the reader from the section `data`."""
    data = config.data
    return replace(
        task_options(data.labels),
        format=data.format,
        # With `title: null` no title is read. Any other column with null is found by its name.
        columns={
            column: name or None
            for column, name in data.columns.items()
            if name or column == "title"
        },
    )


def span_cache(config: PipelineConfig, node: str) -> str:
    """Return the folder that keeps what a node made of each span; empty if nothing is kept.

    Args:
      config: the settings.
      node: the id of the node.
    """
    is_used = config.cache and config.data.window > 1
    return os.path.join(config.paths.root, "spans", config.name, node) if is_used else ""


def _patterns(config: PipelineConfig) -> dict[str, str]:
    """Return group -> glob below the input folder."""
    if config.data.input_base is None:
        return {ALL: _SAMPLE_FILES[config.data.sample]}
    named = {str(split): glob for split, glob in config.data.splits.items()}
    return named or {ALL: EVERYTHING}
