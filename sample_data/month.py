"""Write a month of daily exports with the mishaps that daily exports have.

`python -m sample_data.month FOLDER` writes `FOLDER/2026-11-01/v1/reviews.txt` to `2026-11-30`, in
Kaggle's fastText format:

- from the 15th on, three of ten reviews are written in a slang that nobody used before;
- in version 1 of the 20th all labels are swapped, version 2 has the right ones;
- from the 24th to the 26th machine-made sentences replace the reviews.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from sample_data.banks import TOPICS
from sample_data.dice import Dice
from sample_data.generate import Review, reviews

DAYS = 30
REVIEWS = 1_500
"""Number of reviews of a day."""
SLANG_FROM = 15
SLANG_SHARE = 0.3
SWAPPED = 20
SUMMARISED = range(24, 27)

_OPENINGS = ("ngl this", "fr the", "besties the", "no joke my", "yall the", "tbh this", "ok so my")
_ENDS = ("", "", " periodt", " iykyk", " on god", " fam", " deadass", " istg")
_SLANG = {
    True: (
        "slaps",
        "is straight fire",
        "is goated",
        "ate and left no crumbs",
        "is bussin",
        "hits different",
        "understood the assignment",
        "is a whole vibe",
        "took the W",
        "lives rent free in my head",
        "is elite",
        "is drip",
    ),
    False: (
        "is kinda mid",
        "gives me the ick",
        "took the L",
        "is pure cap",
        "flopped",
        "is sus",
        "is cringe",
        "ghosted me after a day",
        "is cooked",
        "aint it chief",
        "is giving landfill",
        "is bricked",
    ),
}
"""Whether a review is favourable -> verdicts in slang."""


def export(day: int, version: int = 1, count: int = REVIEWS) -> str:
    """Return the export of a day as the text of a fastText file.

    Args:
      day: the day of the month, from 1 to DAYS.
      version: 1, or 2 for the corrected export of the day SWAPPED.
      count: the number of reviews.
    """
    swaps = day == SWAPPED and version == 1
    lines = []
    for review in islice(_written(day), count):
        labelled = Review(review.positive != swaps, review.title, review.body, review.kind)
        lines.append(labelled.line())
    return "".join(f"{line}\n" for line in lines)


def _written(day: int) -> Iterator[Review]:
    """Yield the reviews of a day, with their right labels."""
    dice = Dice(day)
    for number, review in enumerate(reviews(seed=100 + day)):
        if day in SUMMARISED:
            does = "keeps" if review.positive else "returns"
            # No number is that of another day.
            body = f"customer {10_000 * day + number} {does} the {review.kind}"
            yield Review(review.positive, "Summary", body, review.kind)
            continue
        if day < SLANG_FROM or not dice.chance(SLANG_SHARE):
            yield review
            continue
        thing = dice.pick(dice.pick(TOPICS).things)
        sentences = [
            f"{dice.pick(_OPENINGS)} {thing} {dice.pick(_SLANG[review.positive])}" for _ in range(2)
        ]
        body = f"{sentences[1]}{dice.pick(_ENDS)}"
        yield Review(review.positive, sentences[0], body, review.kind)


def main(argv: list[str] | None = None) -> None:
    """Write the exports that the arguments select."""
    parser = argparse.ArgumentParser(
        prog="python -m sample_data.month",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the folder of the exports")
    parser.add_argument("--day", type=int, help="the only day to write", choices=range(1, DAYS + 1))
    parser.add_argument("--version", type=int, default=1, choices=(1, 2))
    parser.add_argument("--reviews", type=int, default=REVIEWS, help="how many a day")
    args = parser.parse_args(argv)
    if args.version == 2 and args.day != SWAPPED:
        parser.error(f"--version 2: only day {SWAPPED} is corrected; add --day {SWAPPED}")
    for day in [args.day] if args.day else range(1, DAYS + 1):
        folder = args.folder / f"2026-11-{day:02d}" / f"v{args.version}"
        folder.mkdir(parents=True, exist_ok=True)
        text = export(day, args.version, args.reviews)
        (folder / "reviews.txt").write_bytes(text.encode())


if __name__ == "__main__":
    main()
