"""The phrase banks of short reviews, read from the text files in `plain/`."""

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "plain"
_ASPECT = re.compile(r"(?P<noun>[^:(]+?)(?P<plural> \(are\))?: (?P<good>.+); (?P<bad>.+)")
_ALTERNATIVES = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True)
class Trait:
    """A part or property of many kinds of products, with the words for and against it."""

    noun: str
    plural: bool
    words: dict[bool, tuple[str, ...]]


Template = tuple[tuple[str, ...], ...]
"""A phrase as a sequence of choices; literal text is a choice with one option."""
Sayings = dict[bool, tuple[tuple[float, Template], ...]]
"""Whether phrases are favourable -> (weight, phrase) of each phrase. The weight is the number of
options in the phrase."""


@dataclass(frozen=True)
class Topic:
    """A kind of product: the names of such products, and the phrases only for them."""

    things: tuple[str, ...]
    sayings: Sayings


def sections(name: str) -> dict[str, list[str]]:
    """Return heading -> the lines below `[heading]` in a file of phrases.

    Args:
      name: the name of a file in `plain/`. The heading of its first lines may be missing; it is "".
    """
    found: dict[str, list[str]] = {}
    heading = ""
    for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            heading = line.strip("[]")
        elif line.strip():
            found.setdefault(heading, []).append(line.strip())
    return found


def _lexicon() -> dict[str, tuple[str, ...]]:
    return {
        heading: tuple(word.strip() for line in lines for word in line.split(","))
        for heading, lines in sections("lexicon.txt").items()
    }


def _trait(line: str) -> Trait:
    match = _ASPECT.fullmatch(line)
    if match is None:
        raise ValueError(f"not an aspect line: {line!r}")
    words = {True: tuple(match["good"].split(", ")), False: tuple(match["bad"].split(", "))}
    return Trait(match["noun"], match["plural"] is not None, words)


def template(saying: str) -> Template:
    """Parse a phrase: `(would|will) buy` becomes (("would", "will"), (" buy",))."""
    # Every second part is the text between parentheses.
    parts = enumerate(_ALTERNATIVES.split(saying))
    return tuple(tuple(part.split("|")) if i % 2 else (part,) for i, part in parts)


def _weighted(saying: str) -> tuple[float, Template]:
    parts = template(saying)
    return sum(len(choices) for choices in parts), parts


def _sayings(lines: list[str]) -> Sayings:
    return {
        favourable: tuple(_weighted(line[2:]) for line in lines if line.startswith(sign))
        for favourable, sign in ((True, "+ "), (False, "- "))
    }


def _topic(lines: list[str]) -> Topic:
    return Topic(tuple(lines[0].removeprefix("= ").split(", ")), _sayings(lines[1:]))


LEXICON = _lexicon()
TRAITS = tuple(_trait(line) for line in sections("aspects.txt")[""])
PATTERNS = sections("patterns.txt")
GENERAL = _sayings(sections("general.txt")[""])
STOCK = _sayings(sections("stock.txt")[""])
TOPICS = tuple(_topic(lines) for lines in sections("topics.txt").values())
DEGREES = {
    int(stars): tuple(template(line) for line in lines)
    for stars, lines in sections("degrees.txt").items()
}
"""Stars, 1 to 5 -> the verdicts that express them."""
