"""The section `serving_check` of the settings, and its golden sentences; imports no TFX."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from core.errors import ConfigError, not_utf8
from core.settings import Fraction, Section
from preprocessing.features import CLASSES

PACKAGED = Path(__file__).with_name("golden.txt")
MAX_BYTES = 65_536
"""Greatest size of the golden sentences. A compiled pipeline passes them in a command-line
argument, which Linux limits to 131,072 bytes."""
_FORM = f"{' or '.join(CLASSES)}, a tab and a text"

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


def read_golden(path: str | None) -> list[tuple[str, str]]:
    """Return the label and the text of each golden sentence.

    Args:
      path: a file with lines of the form `LABEL<tab>TEXT`. Blank lines and lines that begin with #
        are skipped. None: the file of the package.

    Raises:
      ConfigError: the file cannot be read, is too large, or has no sentence or another form.
    """
    file = Path(path) if path else PACKAGED
    where = f"serving_check.golden: {file}"
    try:
        content = file.read_bytes()
        lines = content.decode("utf-8-sig").split("\n")
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {not_utf8(error)}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(
            f"{where} has {len(content):,} bytes; at most {MAX_BYTES:,} are allowed, shorten it"
        )
    sentences = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        label, _, sentence = text.partition("\t")
        if label not in CLASSES or not sentence.strip():
            raise ConfigError(f"{where}, line {number}: {text[:60]!r} is not {_FORM}")
        sentences.append((label, sentence.strip()))
    if not sentences:
        raise ConfigError(f"{where} has no sentence; write lines of {_FORM}")
    return sentences
