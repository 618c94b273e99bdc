"""The parameters of ReviewExampleGen; this module imports no TFX, for a submission needs none."""

from __future__ import annotations

import os

import sample_data
from core.settings import Fraction, PositiveInt, Section
from preprocessing.reading.records import ReadOptions

OPTIONS_KEY = "options"
"""The execution property that holds `Options` as JSON."""
SAMPLE = "sample"
"""The `input_base` that stands for the sample reviews of this installation."""


class Options(Section):
    """The parameters that TFX's own ExampleGens do not have.

    Attributes:
      read: how the files are read.
      max_examples: split -> how many reviews are kept in it.
      max_rejected_fraction: the component fails if a larger part of the lines cannot be used.
      input_fingerprint: of the files, where no driver computes it. It is a part of the cache key
        alone: the executor does not read it.
    """

    read: ReadOptions = ReadOptions()
    max_examples: dict[str, PositiveInt] = {}
    max_rejected_fraction: Fraction = 0.01
    input_fingerprint: str = ""


def input_folder(input_base: str) -> str:
    """Return the folder or gs:// prefix that is read."""
    return os.path.dirname(sample_data.__file__) if input_base == SAMPLE else input_base
