"""Guess the encoding of text that is not UTF-8, to convert it or for a message with the command."""

from __future__ import annotations

import re

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
_NAMES = {
    "cp1252": "WINDOWS-1252",
    "cp1250": "WINDOWS-1250",
    "cp1251": "WINDOWS-1251",
    "koi8_r": "KOI8-R",
    "cp1253": "WINDOWS-1253",
    "cp1254": "WINDOWS-1254",
    "cp1255": "WINDOWS-1255",
    "cp1256": "WINDOWS-1256",
    "gb18030": "GB18030",
    "big5": "BIG5",
    "cp949": "CP949",
    "cp932": "CP932",
    "euc_jp": "EUC-JP",
    "mac_roman": "MACINTOSH",
    "cp850": "CP850",
}
"""Name of an encoding in Python -> its name in `iconv`. Excel saves CSV in one of them, which
depends on the language of the system."""
_TURKISH, _NOT_TURKISH = re.compile(rb"[\xf0\xfd\xfe\xdd]"), re.compile(rb"[\xe1\xed\xf3\xfa\xe6]")
"""Letters of Turkish in Windows-1254, which are Icelandic ones in Windows-1252, and other letters
of Icelandic, and of the languages in Windows-1250 that use these bytes."""
_LATIN = ("cp1252", "cp1250", "cp1254")
_CYRILLIC = ("cp1251", "koi8_r")
_EAST = ("gb18030", "big5", "cp949", "cp932", "euc_jp")
_HIGH, _LOW = re.compile(rb"[\x80-\xff]+"), re.compile(rb"[\x80-\xbf]")
"""Runs of bytes beyond ASCII, and the bytes that no letter of Cyrillic text has, which are about a
third of those in Chinese text."""
_KANA, _HALF_KANA = re.compile("[\u3041-\u30fe]"), re.compile("[\uff61-\uff9f]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_FREQUENT_HANGUL = re.compile("[이다는의요에고지가을를하도한사기]")
_MIN_KANA, _MIN_HANGUL, _MIN_FREQUENT = 0.2, 0.9, 0.08
"""The least fractions of these characters in Japanese and in Korean text."""
_NO_LETTER = re.compile(r"\w[^\w\s\0-\x7f\u2019][^\W\d_]|[a-zß-ÿ][À-ÞŠŒŽŸ]|[¹²³]")
"""What Western text has within few words: a sign between letters, or a capital after a small
letter. Polish or Turkish text in Windows-1252 has many."""
_FEW = 64
"""The number of bytes beyond ASCII up to which the likely languages do not count."""
_SAMPLE = 1 << 16
"""The bytes whose encoding is guessed; of them a guess takes 0.1 s."""


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
    if len(text) > _SAMPLE:
        text = text[: text.rfind(b"\n", 0, _SAMPLE) + 1] or text[:_SAMPLE]
    if not text or b"\0" in text:
        return None
    east = _east_asian(text)
    if east:
        return _NAMES[east]
    from charset_normalizer import from_bytes

    best = from_bytes(text, cp_isolation=list(_NAMES)).best()
    name = best.encoding if best else ""
    if name in _LATIN:
        name = _latin(name, text)
    elif name in _CYRILLIC or (name in _EAST and not _LOW.search(text)):
        letters = [byte for byte in text if byte >= 0xC0]
        # Most letters of Cyrillic text are small.
        small = sum(byte >= 0xE0 for byte in letters)
        name = "cp1251" if 2 * small >= len(letters) else "koi8_r"
    return _NAMES.get(name)


def _east_asian(text: bytes) -> str | None:
    """Return the encoding of text in Japanese, Korean or simplified Chinese; None if unsure.

    Args:
      text: lines that are not UTF-8.
    """
    runs = _HIGH.findall(text)
    if not _LOW.search(text) or sum(map(len, runs)) <= 2 * len(runs):
        return None
    for name in ("cp932", "euc_jp"):
        kana = _fraction(_KANA, text, name)
        if kana >= _MIN_KANA and _fraction(_HALF_KANA, text, name) < kana / 4:
            return name
    # The characters of both languages have two bytes beyond A0 in their usual encodings.
    if any(len(run) % 2 or min(run) < 0xA1 for run in runs):
        return None
    is_korean = _fraction(_HANGUL, text, "cp949") >= _MIN_HANGUL
    if is_korean and _fraction(_FREQUENT_HANGUL, text, "cp949") >= _MIN_FREQUENT:
        return "cp949"
    return "gb18030" if "\ufffd" not in text.decode("gb2312", "replace") else None


def _fraction(pattern: re.Pattern[str], text: bytes, name: str) -> float:
    """Return the fraction of characters beyond ASCII that match; 0 for another encoding."""
    characters = [char for char in text.decode(name, "replace") if char > "\x7f"]
    if not characters or characters.count("\ufffd") > len(characters) / 50:
        return 0
    return len(pattern.findall("".join(characters))) / len(characters)


def _latin(name: str, text: bytes) -> str:
    """Return the one of the Windows encodings of Latin letters that a text has.

    Args:
      name: the guess.
      text: lines that are not UTF-8.
    """
    if _TURKISH.search(text) and not _NOT_TURKISH.search(text):
        return "cp1254"
    high = sum(byte >= 0x80 for byte in text)
    as_western = text.decode("cp1252", "replace")
    if as_western == text.decode(name, "replace"):
        return "cp1252"
    strange = len(_NO_LETTER.findall(as_western)) + as_western.count("\ufffd")
    return "cp1252" if high <= _FEW and not strange else name


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
    return (
        f"is not UTF-8, and looks like {shown(name)}: convert it with "
        f"`iconv -f {name} -t UTF-8 FILE > NEW_FILE`, and read only the new file"
    )


def shown(name: str) -> str:
    """Return the name of an encoding in a message.

    Args:
      name: the result of `guess` or `wide`.
    """
    if name == "WINDOWS-1252":
        return "Windows-1252 (or Latin-1)"
    return name.replace("WINDOWS", "Windows")


def is_utf8(line: bytes) -> bool:
    """Return whether a line is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
