"""Guess the encoding of text that is not UTF-8, to convert it or for a message with the command."""

from __future__ import annotations

import re
from collections import Counter

from preprocessing.reading.shell_commands import filter_command

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
CESU = "CESU-8"
"""UTF-8 in which a character beyond U+FFFF, such as an emoji, is two halves of UTF-16 with three
bytes each, as Oracle's character set `UTF8` and Java write it. Python has no codec for it."""
_HALVES = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
_LANGUAGES = {
    "de": "äöüß",
    "fr": "éèêëàâçîïôûùœ",
    "es": "áéíóúñüªº",
    "it": "àèéìòù",
    "pt": "ãõáéíóúâêôçàª",
    "sv": "åäöé",
    "da": "æøåé",
    "tr": "çğıiöşüâîû",
    "is": "áéíóúýþæðö",
    "pl": "ąćęłńóśźż",
    "cs": "áčďéěíňóřšťúůýž",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "hu": "áéíóöőúüű",
    "ro": "ăâîşţ",
    "hr": "čćđšž",
}
"""The small letters beyond ASCII of languages in Latin letters."""
_SIGNS = frozenset("‘’‚“”„–—…€£©®°·•«»¿¡½²³§™\xa0\xad")
_WESTERN = ("de", "fr", "es", "it", "pt", "sv", "da", "is")
_LATIN = (
    ("cp1252", ("de", "fr", "es", "it", "pt", "sv", "da")),
    ("cp1254", ("tr",)),
    ("cp1252", ("is",)),
    ("cp1250", ("pl", "cs", "sk", "hu", "ro", "hr")),
    ("mac_roman", _WESTERN),
    ("cp850", _WESTERN),
)
"""Encodings with the languages that are written in them; the first one that fits best is taken."""
_SEVERAL, _FITS = 0.9, 0.7
"""The weight of all Western languages together, and the least fraction of letters that fit."""
_WESTERN_RUN = 2
"""The maximum mean length of runs of bytes beyond ASCII in Latin text."""
_CYRILLIC = ("cp1251", "koi8_r")
_INSIDE = re.compile(r"([a-zà-öø-ÿ])([À-ÖØ-ÞŁŚŹŻŠŽŸĄĆĘŇŘŤŮŐŰĚČĎ])")
"""A small letter and a capital, which text in another encoding has within words."""
_EAST = ("gb18030", "big5", "cp949", "cp932", "euc_jp")
_HIGH, _LOW = re.compile(rb"[\x80-\xff]+"), re.compile(rb"[\x80-\xbf]")
"""Runs of bytes beyond ASCII, and the bytes that no letter of Cyrillic text has, which are about a
third of those in Chinese text."""
_KANA, _HALF_KANA = re.compile("[\u3041-\u30fe]"), re.compile("[\uff61-\uff9f]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_FREQUENT_HANGUL = re.compile("[이다는의요에고지가을를하도한사기]")
_MIN_KANA, _MIN_HANGUL, _MIN_FREQUENT = 0.2, 0.9, 0.08
"""The least fractions of these characters in Japanese and in Korean text."""
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
    if is_utf8(_HALVES.sub(b"", text)):
        return CESU
    runs = _HIGH.findall(text)
    if sum(map(len, runs)) <= _WESTERN_RUN * len(runs):
        found = _latin(text)
    else:
        found = _east_asian(text)
    if found:
        return _NAMES[found]
    from charset_normalizer import from_bytes

    best = from_bytes(text, cp_isolation=list(_NAMES)).best()
    name = best.encoding if best else ""
    if name in _CYRILLIC or (name in _EAST and not _LOW.search(text)):
        letters = [byte for byte in text if byte >= 0xC0]
        # Most letters of Cyrillic text are small.
        small = sum(byte >= 0xE0 for byte in letters)
        name = "cp1251" if 2 * small >= len(letters) else "koi8_r"
    return _NAMES.get(name)


def decoded(data: bytes, name: str) -> str:
    """Return a text in an encoding; what is not valid in it becomes U+FFFD.

    Args:
      data: the bytes.
      name: the result of `guess` or `wide`.
    """
    if name != CESU:
        return data.decode(name, "replace")
    return _HALVES.sub(_whole, data).decode("utf-8", "replace")


def _whole(halves: re.Match[bytes]) -> bytes:
    pair = halves[0].decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass")
    return pair.decode("utf-16-le").encode()


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


def _latin(text: bytes) -> str | None:
    """Return the encoding of text in Latin letters; None if no one fits.

    Args:
      text: lines that are not UTF-8.
    """
    best, most = None, _FITS
    for name, languages in _LATIN:
        letters = _words_beyond_ascii(text.decode(name, "replace"))
        number = sum(letters.values())
        together = {letter for language in languages for letter in _LANGUAGES[language]}
        for alphabet, weight in [
            *((frozenset(_LANGUAGES[language]), 1.0) for language in languages),
            (together, _SEVERAL),
        ]:
            fitting = sum(n for letter, n in letters.items() if letter in alphabet | _SIGNS)
            if weight * fitting > most * number:
                best, most = name, weight * fitting / number
    return best


def _words_beyond_ascii(text: str) -> Counter[str]:
    """Return the characters beyond ASCII in lower case; a capital within a word is `?`."""
    found = Counter(char.lower() for char in text if char > "\x7f")
    inside = Counter(char.lower() for _, char in _INSIDE.findall(text))
    found -= inside
    found["?"] += inside.total()
    return found


def remedy(path: str, data: bytes) -> str:
    """Return a clause with the likely encoding of a text that is not UTF-8, and how to convert it.

    Args:
      path: path or URL of the file.
      data: the beginning of its content.

    Raises:
      InputError: the file cannot be opened.
    """
    if b"\0" in data:
        return "has NUL bytes, which no text has: download or copy it again"
    if is_utf8(data) and b"\\u" in data:
        return (
            "has escapes of half a character, such as \\ud83d without its second half, because a "
            "text was cut there: remove them, or set data.max_rejected_fraction to the fraction of "
            "these lines"
        )
    name = guess(data)
    if name is None:
        command = filter_command(path, "iconv -f ENCODING -t UTF-8")
        return (
            f"has lines that are not UTF-8: convert it with `{command}`, where ENCODING is the one "
            "in which it was saved, and read only the new file"
        )
    return (
        f"is not UTF-8, and looks like {shown(name)}: convert it with "
        "`amazon-reviews data convert FOLDER NEW_FOLDER`, and read only the new folder"
    )


def shown(name: str) -> str:
    """Return the name of an encoding in a message.

    Args:
      name: the result of `guess` or `wide`.
    """
    if name == "WINDOWS-1252":
        return "Windows-1252 (or Latin-1)"
    if name == CESU:
        return "CESU-8 (emojis in UTF-8 as two halves of UTF-16)"
    return name.replace("WINDOWS", "Windows")


def is_utf8(line: bytes) -> bool:
    """Return whether a line is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
