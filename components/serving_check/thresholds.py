"""The section `serving_check` of the settings. This module imports no TFX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from components.serving_check.golden import Golden, read_golden
from core.settings import Fraction, LocalPath, Section
from preprocessing.labels import SENTIMENT

_Positive = Annotated[float, Field(gt=0)]


class Thresholds(Section):
    """ServingCheck, which serves a candidate in a new process, and its thresholds for a push."""

    max_memory_mb: _Positive = 4096.0
    """Maximum resident memory in MiB of the serving process, which includes TensorFlow."""
    max_p99_ms: _Positive = 1000.0
    """Maximum p99 latency in milliseconds of requests with a single review."""
    golden: LocalPath | None = None
    """File of golden sentences, each line with the name of a class, a tab and a text. Lines that
    begin with # are comments; a class with the name `#x` is written `\\#x`. None: for negative and
    positive reviews the English sentences in the package, if enough of their words occur in the
    train reviews, and for other classes none."""
    min_golden: Fraction = 0.5
    """Minimum fraction of the golden sentences of each class that the model answers correctly; 0:
    none."""

    def parameters(self, classes: Sequence[str] = SENTIMENT.names) -> dict[str, str]:
        """Return the parameters `settings` and `golden` of the component, each as JSON.

        `golden` contains the sentences themselves, so they are a part of the cache key and of a
        compiled pipeline.

        Args:
          classes: the classes of the settings; empty if they are found in the files.

        Raises:
          ConfigError: see `read_golden`.
        """
        golden = Golden(not self.golden, read_golden(self.golden, classes))
        return {
            "settings": self.model_dump_json(exclude={"golden"}),
            "golden": golden.to_json(),
        }

    def named_classes(self, classes: Sequence[str] = SENTIMENT.names) -> list[str]:
        """Return the classes of the sentences in the file `golden`; empty without a file.

        Args:
          classes: see `parameters`.

        Raises:
          ConfigError: see `read_golden`.
        """
        if not self.golden:
            return []
        return sorted({sentence.label for sentence in read_golden(self.golden, classes)})
