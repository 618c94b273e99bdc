"""The parameters of ReviewExampleGen. A submission imports this module, so it imports no TFX."""

from __future__ import annotations

import os

import sample_data
from core.settings import Fraction, PositiveInt, Section
from examples.split_fractions import SplitFractions
from preprocessing.reading.records import ReadOptions

OPTIONS_KEY = "options"
"""The execution property that contains `Options` as JSON."""
SPAN_KEY = "span"
"""The execution property that contains `data.span`."""
SAMPLE = "sample"
"""The `input_base` that selects the sample reviews of this package."""
ONLY_SAMPLE = (
    "parameter input_base: the pipeline was compiled with the sample and reads only its file; set "
    "data.input_base and compile again"
)
"""The error about a run of such a pipeline with another `input_base`."""


class Options(Section):
    """The parameters of ReviewExampleGen other than `input_base` and `span`.

    Attributes:
      patterns: group -> glob below `input_base`. The groups are the splits train, eval and test, or
        the single group `all`.
      reads_sample: whether the patterns are those of the sample, which another folder lacks.
      read: the options of the reader.
      window: the number of spans that are read, if the input has spans.
      split_fractions: the sizes of the splits that have no files of their own.
      max_examples: split -> maximum number of its reviews; a split without a limit is missing.
      max_rejected_fraction: the component fails if a larger fraction of the lines is unusable.
      span_cache: the folder that keeps what was read of each span; empty: nothing is kept.
      input_fingerprint: fingerprint of the files, a part of the cache key; empty if it is unknown.
        The executor fails if local files have another fingerprint.
    """

    patterns: dict[str, str]
    reads_sample: bool = False
    read: ReadOptions = ReadOptions()
    window: PositiveInt = 1
    split_fractions: SplitFractions = SplitFractions()
    max_examples: dict[str, PositiveInt] = {}
    max_rejected_fraction: Fraction = 0.01
    span_cache: str = ""
    input_fingerprint: str = ""


def input_folder(input_base: str) -> str:
    """Return the folder of the raw files: `input_base`, or a folder of this package for SAMPLE."""
    return os.path.dirname(sample_data.__file__) if input_base == SAMPLE else input_base
