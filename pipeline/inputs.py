"""The input files of a configuration, and the options of their reader."""

from __future__ import annotations

from pathlib import Path

import sample_data
from components.review_example_gen.splits import ALL_FILES
from pipeline.config import PipelineConfig
from preprocessing.reading.globs import EVERYTHING
from preprocessing.reading.records import ReadOptions

_SAMPLE_PATTERN = "reviews.ft.txt"


def input_files(config: PipelineConfig) -> tuple[str, dict[str, str]]:
    """Return the input folder, and group -> glob below it."""
    data = config.data
    if data.input_base is None:
        return str(Path(sample_data.__file__).parent), {ALL_FILES: _SAMPLE_PATTERN}
    named = {str(split): pattern for split, pattern in data.splits.items()}
    return data.input_base, named or {ALL_FILES: EVERYTHING}


def read_options(config: PipelineConfig) -> ReadOptions:
    data = config.data
    return ReadOptions(
        format=data.format,
        # Without a title is a way to read files; without a label or a text is none.
        columns={
            column: name or None
            for column, name in data.columns.items()
            if name or column == "title"
        },
        label_map=data.labels,
    )
