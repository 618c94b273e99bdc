"""The section `serving_check` of the settings; imports no TFX."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field, field_validator

from core.settings import Fraction, Section

_Positive = Annotated[float, Field(gt=0)]


class Thresholds(Section):
    """ServingCheck, which serves a candidate in a new process, and its thresholds for a push."""

    removed = dict.fromkeys(
        ("max_load_seconds", "min_reviews_per_second"), "set serving_check.max_p99_ms"
    ) | dict.fromkeys(("check_examples", "timeout_seconds"), "its default is a constant")

    max_memory_mb: _Positive = 4096.0
    """Greatest resident memory in MiB of the process, which includes TensorFlow's."""
    max_p99_ms: _Positive = 1000.0
    """Greatest p99 latency in milliseconds of requests with a single review."""
    golden: Annotated[str, Field(min_length=1)] | None = None
    """File with a golden sentence in each line, `positive` or `negative`, a tab, and the text;
    None: the list that the package contains."""
    min_golden: Fraction = 0.5
    """Least fraction of the golden sentences of each class whose predicted label is right; 0:
    none."""

    @field_validator("golden")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value and "://" in value:
            raise ValueError("must be a file of this machine; the pipeline contains its text")
        return os.path.abspath(os.path.expanduser(value)) if value else value
