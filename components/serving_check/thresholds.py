"""The section `serving_check` of the settings, and its golden sentences; imports no TFX."""

from __future__ import annotations

import json
import os
from typing import Annotated

from pydantic import Field, field_validator

from components.serving_check.golden import read_golden
from core.settings import Fraction, Section

_Positive = Annotated[float, Field(gt=0)]


class Thresholds(Section):
    """ServingCheck, which serves a candidate in a new process, and its thresholds for a push."""

    max_memory_mb: _Positive = 4096.0
    """Greatest resident memory in MiB of the process, which includes TensorFlow's."""
    max_p99_ms: _Positive = 1000.0
    """Greatest p99 latency in milliseconds of requests with a single review."""
    golden: Annotated[str, Field(min_length=1)] | None = None
    """File with a golden sentence in each line, `positive` or `negative`, a tab, and the text;
    None: the English list that the package contains, if its words occur in the train reviews."""
    min_golden: Fraction = 0.5
    """Least fraction of the golden sentences of each class whose predicted label is right; 0:
    none."""

    @field_validator("golden")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value and "://" in value:
            raise ValueError("must be a file of this machine; the pipeline contains its text")
        return os.path.abspath(os.path.expanduser(value)) if value else value

    def parameters(self) -> dict[str, str]:
        """Return the parameters `settings` and `golden` of the component, JSON.

        `golden` contains the golden sentences themselves, which are so a part of the cache key and
        of a compiled pipeline.

        Raises:
          ConfigError: see `read_golden`.
        """
        golden = {"packaged": not self.golden, "sentences": read_golden(self.golden)}
        return {
            "settings": self.model_dump_json(exclude={"golden"}),
            "golden": json.dumps(golden, ensure_ascii=False),
        }
