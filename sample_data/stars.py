"""Reviews with one to five stars: a mix of favourable and unfavourable sayings, and a verdict.

`python -m sample_data.generate --sample stars` writes `stars.csv`, byte for byte the committed
file.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sample_data.banks import DEGREES
from sample_data.dice import Dice
from sample_data.slips import Typist
from sample_data.speaker import Speaker

SEED = 11
REVIEWS = 8_000
OUTPUT = Path(__file__).parent / "stars.csv"
HEADER = ("stars", "title", "text")

# (fraction of reviews, stars)
STARS = ((0.17, 1), (0.13, 2), (0.17, 3), (0.22, 4), (0.31, 5))
FAVOURABLE = {1: 0.04, 2: 0.25, 3: 0.5, 4: 0.78, 5: 0.96}
"""Stars -> fraction of the sayings that are favourable."""
# (fraction of reviews, sayings in addition to the title)
SAYINGS = ((0.2, 1), (0.3, 2), (0.25, 3), (0.15, 4), (0.1, 6))
VERDICTS = 0.8
"""Fraction of reviews that contain a verdict, as the title or as the last sentence."""
TITLES = 0.4
"""Fraction of verdicts that are the title."""
NEIGHBOURS = 0.06
"""Fraction of reviewers who give a star more or less than their words express."""


@dataclass(frozen=True)
class StarReview:
    """A review with one to five stars."""

    stars: int
    title: str
    text: str


class StarReviewer:
    """The writer of one review that expresses a number of stars.

    Args:
      dice: the source of random choices.
      stars: the stars that the words express.
    """

    def __init__(self, dice: Dice, stars: int) -> None:
        self.dice = dice
        self.stars = stars
        self.speaker = Speaker(dice)
        self.typist = Typist(dice)

    def write(self) -> tuple[str, str]:
        """Return a title and a text."""
        sentences = [self._say() for _ in range(self.dice.weighted(SAYINGS))]
        title = ""
        if self.dice.chance(VERDICTS):
            verdict = self.speaker.judge(self.dice.pick(DEGREES[self.stars]))
            if self.dice.chance(TITLES):
                title = verdict
            else:
                sentences.append(verdict)
        title = self.typist.title(_capital(title or self._say()))
        return title, " ".join(self._sentence(sentence) for sentence in sentences)

    def _say(self) -> str:
        return self.speaker.say(self.dice.chance(FAVOURABLE[self.stars]))

    def _sentence(self, text: str) -> str:
        return _capital(self.typist.type(text)) + self.typist.end()


def star_reviews(seed: int = SEED) -> Iterator[StarReview]:
    """Yield reviews endlessly, no two with the same words; equal seeds yield equal reviews."""
    dice = Dice(seed)
    seen: set[str] = set()
    while True:
        meant = dice.weighted(STARS)
        title, text = StarReviewer(dice, meant).write()
        stars = _neighbour(dice, meant) if dice.chance(NEIGHBOURS) else meant
        words = f"{title} {text}".casefold()
        if words not in seen:
            seen.add(words)
            yield StarReview(stars, title, text)


def render(seed: int = SEED, count: int = REVIEWS) -> str:
    """Return the first `count` reviews as the text of a CSV file."""
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(HEADER)
    for review in islice(star_reviews(seed), count):
        rows.writerow((review.stars, review.title, review.text))
    return file.getvalue()


def _neighbour(dice: Dice, stars: int) -> int:
    """Return a star more or less; the only neighbour of 1 and of 5."""
    return dice.pick([near for near in (stars - 1, stars + 1) if 1 <= near <= 5])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
