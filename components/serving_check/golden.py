"""The golden sentences: labelled texts, of which a model must predict a fraction correctly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from core.errors import ConfigError, not_utf8
from preprocessing.features import CLASSES

PACKAGED = Path(__file__).with_name("golden.txt")
MAX_BYTES = 65_536
"""Greatest size of the file in bytes. A compiled pipeline passes the sentences in a command-line
argument, which Linux limits to 131,072 bytes."""

_FORM = f"{' or '.join(CLASSES)}, a tab and a text"

Sentence = tuple[str, str]
"""A label of `preprocessing.features.CLASSES`, and a text."""


def read_golden(path: str | None) -> list[Sentence]:
    """Return the sentences of a file; None: those of the package.

    A line has the form `LABEL<tab>TEXT`. Blank lines and lines that begin with # are skipped.

    Raises:
      ConfigError: the file cannot be read, is too large, has no sentence, or a line of it has
        another form; the message names the line.
    """
    file = Path(path) if path else PACKAGED
    where = f"serving_check.golden: {file}"
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(
            f"{where} has {len(content):,} bytes; at most {MAX_BYTES:,} are allowed, shorten it"
        )
    sentences = list(_parse(content, where))
    if not sentences:
        raise ConfigError(f"{where} has no sentence; write lines of {_FORM}")
    return sentences


def encode(sentences: list[Sentence]) -> str:
    """Return the sentences as an execution property."""
    return json.dumps(sentences, ensure_ascii=False)


def decode(text: str) -> list[Sentence]:
    """Return the sentences of an execution property that `encode` returned."""
    return [(label, sentence) for label, sentence in json.loads(text)]


def _parse(content: bytes, where: str) -> Iterator[Sentence]:
    lines: dict[str, int] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        place = f"{where}, line {number}"
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{place}: {not_utf8(error)}") from None
        if not text or text.startswith("#"):
            continue
        label, tab, sentence = text.partition("\t")
        sentence = sentence.strip()
        if not tab or not sentence:
            raise ConfigError(f"{place}: {_shortened(text)!r} is not {_FORM}")
        if label not in CLASSES:
            raise ConfigError(
                f"{place}: unknown label {_shortened(label)!r}; write {' or '.join(CLASSES)}"
            )
        if sentence in lines:
            raise ConfigError(
                f"{place}: {_shortened(sentence)!r} is in line {lines[sentence]} too; keep one"
            )
        lines[sentence] = number
        yield label, sentence


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
