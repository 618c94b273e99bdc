"""The golden sentences: texts with known labels that the serving check sends to a candidate.

This module imports no TFX.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from core.errors import ConfigError
from core.files import read_text
from preprocessing.labels import SENTIMENT, plain_name

PACKAGED = Path(__file__).with_name("golden.txt")
"""The file with the golden sentences of the package, which are English."""
MAX_BYTES = 65_536
"""Maximum size of a file of golden sentences. A compiled pipeline passes them in a command-line
argument, which Linux limits to 131,072 bytes."""


class Sentence(NamedTuple):
    """A golden sentence, and the name of its class."""

    label: str
    text: str


class Golden(NamedTuple):
    """The golden sentences of a serving check.

    Attributes:
      is_packaged: whether they are those of the package, which are for sentiment.
      sentences: the sentences.
    """

    is_packaged: bool
    sentences: Sequence[Sentence]

    def to_json(self) -> str:
        """Return the parameter of the component, which is a part of the key of its cache."""
        content = {"packaged": self.is_packaged, "sentences": self.sentences}
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Golden:
        """Return the sentences that `to_json` converted."""
        content = json.loads(text)
        return cls(content["packaged"], [Sentence(*pair) for pair in content["sentences"]])


def read_golden(path: str | None, classes: Sequence[str] = SENTIMENT.names) -> list[Sentence]:
    """Return the golden sentences of a file.

    Args:
      path: a file in UTF-8 with lines of the form `LABEL<tab>TEXT`. Blank lines and lines that
        begin with # are skipped. A label that begins with # is written with a backslash before it.
        None: the file of the package, which is for sentiment.
      classes: the labels that are allowed; empty: any, because the classes are not known yet.

    Raises:
      ConfigError: the file cannot be read, is too large or has no sentence, or a line has another
        form.
    """
    file = Path(path) if path else PACKAGED
    where = f"serving_check.golden: {file}"
    lines = read_text(file, where, MAX_BYTES, "shorten it").split("\n")
    form = f"{' or '.join(classes) or 'a class'}, a tab and a text"
    sentences = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, _, sentence = text.partition("\t")
        label = plain_name(name.removeprefix("\\") if name.startswith(r"\#") else name)
        is_known = label in classes if classes and path else bool(label)
        if not is_known or not sentence.strip():
            raise ConfigError(f"{where}, line {number}: {text[:60]!r} is not {form}")
        sentences.append(Sentence(label, sentence.strip()))
    if not sentences:
        raise ConfigError(f"{where} has no sentence; write lines of {form}")
    return sentences
