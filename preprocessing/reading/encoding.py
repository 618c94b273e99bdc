"""Guess the encoding of text that is not UTF-8, for messages with the command to convert it."""

from __future__ import annotations

import re

_HIGH = re.compile(rb"[\x80-\xff]+")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
"""Bytes without a character in Windows-1252."""
_INSIDE_WORDS = re.compile(rb"[a-zA-Z][\x80-\x89\x8b-\x91\x93-\x99\x9b\x9d\x9f][a-z]")
"""Bytes within words that are signs in Windows-1252 and letters in other encodings."""
_WESTERN_RUN, _MOST = 2, 0.6
"""The maximum mean length of runs of bytes beyond ASCII in Western text, and the fraction of these
bytes that decides between Cyrillic encodings."""
_TEXT = rb"[\t\n\r -~]"
_WIDE = (
    (rb"\xff\xfe\0\0|\0\0\xfe\xff", "UTF-32"),
    (rb"\xff\xfe|\xfe\xff", "UTF-16"),
    (rb"(" + _TEXT + rb"\0{3}){8}", "UTF-32LE"),
    (rb"(\0{3}" + _TEXT + rb"){8}", "UTF-32BE"),
    (rb"(" + _TEXT + rb"\0){8}", "UTF-16LE"),
    (rb"(\0" + _TEXT + rb"){8}", "UTF-16BE"),
)
"""The beginnings of a text whose characters have two or four bytes, and its encoding."""


def wide(data: bytes) -> str | None:
    """Return the encoding of a text in UTF-16 or UTF-32, by its name in `iconv`; else None.

    Args:
      data: the beginning of the file.
    """
    return next((name for pattern, name in _WIDE if re.match(pattern, data)), None)


def guess(data: bytes) -> str | None:
    """Return the likely encoding, by its name in `iconv`; None for UTF-8, or if it is unknown.

    Only lines that are not UTF-8 count, because a file that was concatenated from others may have
    several encodings.

    Args:
      data: the beginning of the file.
    """
    text = b"\n".join(line for line in data.split(b"\n") if not is_utf8(line))
    runs = _HIGH.findall(text)
    if not runs or b"\0" in text:
        return None
    high = b"".join(runs)
    if len(high) <= _WESTERN_RUN * len(runs):
        inside = len(_INSIDE_WORDS.findall(text))
        is_western = not _UNDEFINED.search(text) and inside <= len(high) / 2
        return "WINDOWS-1252" if is_western else None
    # Most letters of Cyrillic text are small.
    if _fraction(high, 0xE0, 0xFF) >= _MOST:
        return "WINDOWS-1251"
    if _fraction(high, 0xC0, 0xDF) >= _MOST:
        return "KOI8-R"
    return "SHIFT_JIS" if _is_japanese(text) else None


def remedy(data: bytes) -> str:
    """Return a clause with the likely encoding of a text that is not UTF-8, and how to convert it.

    Args:
      data: the beginning of the file.
    """
    if b"\0" in data:
        return "has NUL bytes, which no text has: download or copy it again"
    name = guess(data)
    if name is None:
        return (
            "has lines that are not UTF-8: convert it with "
            "`iconv -f ENCODING -t UTF-8 FILE > NEW_FILE`, where ENCODING is the one in which it "
            "was saved, and read only the new file"
        )
    shown = "Windows-1252 (or Latin-1)" if name == "WINDOWS-1252" else name.title()
    return (
        f"is not UTF-8, and looks like {shown}: convert it with "
        f"`iconv -f {name} -t UTF-8 FILE > NEW_FILE`, and read only the new file"
    )


def is_utf8(line: bytes) -> bool:
    """Return whether a line is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fraction(data: bytes, first: int, last: int) -> float:
    return sum(first <= byte <= last for byte in data) / len(data)


def _is_japanese(text: bytes) -> bool:
    try:
        characters = text.decode("shift_jis")
    except UnicodeDecodeError:
        return False
    return any("\u3041" <= char <= "\u30f6" for char in characters)
