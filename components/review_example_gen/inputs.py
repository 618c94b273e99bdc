"""What `input_base` of ReviewExampleGen means."""

from __future__ import annotations

import os

import sample_data

SAMPLE = "sample"
"""As `input_base`: the sample of this installation, in whatever folder it is."""


def input_folder(input_base: str) -> str:
    """Return the folder or gs:// prefix that is read."""
    return os.path.dirname(sample_data.__file__) if input_base == SAMPLE else input_base
