"""Two files with the same reviews are refused, whatever their formats, and other files are not."""

from pathlib import Path

import pytest

from core.errors import InputError
from preprocessing.reading.files import find_sources
from preprocessing.reading.layouts import decide_layouts
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import COMPRESS, as_file, one_line, write

NAMES = ("overall", "summary", "reviewText")


def rows(count, first=0):
    """Return reviews; every third has a text that other files have, too."""
    texts = ["Great product", "The switch of lamp {} fell off.", "Lamp {} is bright\nand small."]
    return [
        (1 + 4 * (number % 2), "Great", texts[number % 3].format(number))
        for number in range(first, first + count)
    ]


def content(kind, reviews):
    return as_file(kind, dict(zip(NAMES, zip(*reviews, strict=True), strict=True)))


def decide(folder, **patterns):
    """Decide the layouts of the files; return their number."""
    files = find_sources(str(folder), patterns or {"all": "**"})
    return len(decide_layouts(files, ReadOptions()))


@pytest.mark.parametrize(
    ("kind", "suffix", "count"), [("csv", "", 3), ("jsonl", ".gz", 80), ("parquet", "", 300)]
)
def test_the_same_reviews_in_two_formats_are_refused(tmp_path, kind, suffix, count):
    one = write(tmp_path, "reviews", content("jsonl", rows(count)))
    copies = [*reversed(rows(count)[:100]), *rows(count)[100:]]
    other = write(tmp_path, "the same" + suffix, COMPRESS[suffix](content(kind, copies)))
    with pytest.raises(InputError) as error:
        decide(tmp_path)
    one_line(error, f"{one} and {other} contain the same texts", "data.splits")
    # The remedies of the message.
    assert decide(tmp_path, train="re*") == 1
    Path(other).unlink()
    assert decide(tmp_path) == 1


@pytest.mark.parametrize(
    "reviews_of",
    [
        # They repeat a few phrases.
        lambda n: [(5, "", "I use it every day."), (1, "", "It arrived in pieces.")] * 50,
        # Half of the reviews of a file are also in the next one.
        lambda n: rows(60, 30 * n),
        # They have the same short texts.
        lambda n: [(5, "", "Great product"), (1, "", "Broken"), (5, "", "Works as it should.")],
    ],
)
def test_files_that_share_some_texts_are_read(tmp_path, reviews_of):
    for number in range(4):
        write(tmp_path, f"{number}.csv", content("csv", reviews_of(number)))
    assert decide(tmp_path) == 4


def test_files_of_different_splits_may_share_reviews(tmp_path):
    for name in ("train.csv", "test.csv"):
        write(tmp_path, name, content("csv", rows(50)))
    assert decide(tmp_path, train="train.csv", test="test.csv") == 2
