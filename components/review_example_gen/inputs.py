"""What ReviewExampleGen is given; imports no TFX, so that a submission need not wait for it."""

from __future__ import annotations

import os

import sample_data

OPTIONS_KEY = "options"
"""The execution property with all that TFX's own ExampleGens do not know."""
SAMPLE = "sample"
"""As `input_base`: the sample of this installation, in whatever folder it is."""


def input_folder(input_base: str) -> str:
    """Return the folder or gs:// prefix that is read."""
    return os.path.dirname(sample_data.__file__) if input_base == SAMPLE else input_base
