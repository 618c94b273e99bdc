"""The golden sentences: texts with known labels that the serving check sends to a candidate.

This module imports no TFX.
"""

from __future__ import annotations

from pathlib import Path

from core.errors import ConfigError, not_utf8
from preprocessing.labels import SENTIMENT

PACKAGED = Path(__file__).with_name("golden.txt")
"""The file with the golden sentences of the package, which are English."""
MAX_BYTES = 65_536
"""Maximum size of a file of golden sentences. A compiled pipeline passes them in a command-line
argument, which Linux limits to 131,072 bytes."""
_FORM = f"{' or '.join(SENTIMENT.names)}, a tab and a text"


def read_golden(path: str | None) -> list[tuple[str, str]]:
    """Return the golden sentences of a file as pairs (label, text).

    Args:
      path: a file in UTF-8 with lines of the form `LABEL<tab>TEXT`. Blank lines and lines that
        begin with # are skipped. None: the file of the package.

    Raises:
      ConfigError: the file cannot be read, is too large or has no sentence, or a line has another
        form.
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
        if label not in SENTIMENT.names or not sentence.strip():
            raise ConfigError(f"{where}, line {number}: {text[:60]!r} is not {_FORM}")
        sentences.append((label, sentence.strip()))
    if not sentences:
        raise ConfigError(f"{where} has no sentence; write lines of {_FORM}")
    return sentences
