"""Write the sample data: reproducible sets of synthetic product reviews.

`python -m sample_data.generate` writes `reviews.ft.txt`, byte for byte the committed file, and
`python -m sample_data.generate --sample stars` writes `stars.csv`.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from sample_data import stars
from sample_data.dice import Dice
from sample_data.products import KINDS
from sample_data.reviewer import MAX_WORDS, Reviewer

SEED = 7
REVIEWS = 32_000
MIN_WORDS = 3
OUTPUT = Path(__file__).parent / "reviews.ft.txt"

# Fraction of reviews with a label that contradicts the text, as in real data.
LABEL_NOISE = 0.006
# (fraction of reviews of at most this length, words in title and body)
LENGTHS = (
    (0.0, 3),
    (0.45, 5),
    (0.75, 9),
    (0.87, 15),
    (0.93, 25),
    (0.965, 50),
    (0.99, 110),
    (0.998, 220),
    (1.0, 304),
)


@dataclass(frozen=True)
class Review:
    """A labelled review; `kind` is the name of its kind of product."""

    positive: bool
    title: str
    body: str
    kind: str

    def line(self) -> str:
        """Return the review in Kaggle's fastText format, without a line break."""
        return f"__label__{2 if self.positive else 1} {self.title}: {self.body}"


def draw_length(dice: Dice) -> int:
    """Return the intended number of words of a review: usually below 10, rarely up to 304."""
    share = dice.share()
    for (low, start), (high, end) in pairwise(LENGTHS):
        if share < high:
            return int(start + (end - start) * (share - low) / (high - low))
    return MAX_WORDS


def reviews(seed: int = SEED) -> Iterator[Review]:
    """Yield reviews endlessly, no two with the same words; equal seeds yield equal reviews."""
    dice = Dice(seed)
    seen: set[str] = set()
    while True:
        kind, positive = dice.pick(KINDS), dice.chance(0.5)
        title, body = Reviewer(dice, kind, positive, draw_length(dice)).write()
        label = positive != dice.chance(LABEL_NOISE)
        words = re.findall(r"[\w']+", f"{title} {body}".casefold())
        text = " ".join(words)
        if text not in seen and len(words) >= MIN_WORDS:
            seen.add(text)
            yield Review(label, title, body, kind.name)


def render(seed: int = SEED, count: int = REVIEWS) -> str:
    """Return the first `count` reviews as the text of a fastText file."""
    return "".join(f"{review.line()}\n" for review in islice(reviews(seed), count))


SAMPLES = {
    "reviews": (OUTPUT, SEED, REVIEWS, render),
    "stars": (stars.OUTPUT, stars.SEED, stars.REVIEWS, stars.render),
}
"""Name of a sample -> its file, its seed, its number of reviews and the function that returns its
text."""


def main(argv: list[str] | None = None) -> None:
    """Write the file of the command line, in UTF-8 with `\\n` on every platform."""
    parser = argparse.ArgumentParser(
        prog="python -m sample_data.generate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sample", choices=SAMPLES, default="reviews", help="the set to write")
    parser.add_argument("--output", type=Path, help="file to write")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--reviews", type=int, help="how many to write")
    args = parser.parse_args(argv)
    output, seed, count, render_sample = SAMPLES[args.sample]
    output = args.output or output
    count = count if args.reviews is None else args.reviews
    seed = seed if args.seed is None else args.seed
    output.write_bytes(render_sample(seed, count).encode())
    print(f"{count} reviews -> {output}")


if __name__ == "__main__":
    main()
