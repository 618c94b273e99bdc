"""The embedded sample data: reproducible, well-formed, varied, and learnable but not trivial."""

import csv
import re
from collections import Counter
from statistics import mean, median

import pytest

from sample_data import generate, stars
from tests.e2e import everyday

LINES = generate.OUTPUT.read_text(encoding="utf-8").splitlines()
LABELS = [line.startswith("__label__2 ") for line in LINES]
TEXTS = [line.split(" ", 1)[1] for line in LINES]
LENGTHS = [len(text.split()) for text in TEXTS]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "committed"), [([], generate.OUTPUT), (["--sample", "stars"], stars.OUTPUT)]
)
def test_committed_file_is_what_the_generator_writes(tmp_path, arguments, committed):
    output = tmp_path / "again"
    generate.main([*arguments, "--output", str(output)])
    assert output.read_bytes() == committed.read_bytes()


def test_lengths_have_a_long_tail_labels_are_balanced_and_no_text_is_twice():
    assert 290 <= max(LENGTHS) <= 300
    assert median(LENGTHS) < mean(LENGTHS) <= 20
    assert 0.47 < mean(LABELS) < 0.53
    assert len({text.casefold() for text in TEXTS}) == len(TEXTS)


def test_no_everyday_sentence_is_in_the_sample():
    """Neither as a title, nor as a body, nor as one of its sentences."""
    known = set()
    for text in TEXTS:
        title, _, body = text.partition(": ")
        known |= {plain(part) for part in (text, title, body, *re.split(r"[.!;]+", body))}
    assert not [sentence for _, sentence in everyday.SENTENCES if plain(sentence) in known]


def plain(text):
    return " ".join(re.findall(r"[\w']+", text.casefold()))


def test_the_stars_are_unequally_frequent_and_no_text_is_twice():
    with stars.OUTPUT.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == stars.REVIEWS and stars.OUTPUT.stat().st_size < 1_000_000
    shares = {
        star: number / len(rows) for star, number in Counter(row["stars"] for row in rows).items()
    }
    assert sorted(shares) == ["1", "2", "3", "4", "5"]
    assert min(shares.values()) > 0.1 and max(shares, key=shares.get) == "5"
    assert len({(row["title"] + row["text"]).casefold() for row in rows}) == len(rows)


def test_more_stars_have_more_favourable_sayings():
    with stars.OUTPUT.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    fractions = []
    for star in "12345":
        texts = [f"{row['title']} {row['text']}".casefold() for row in rows if row["stars"] == star]
        good, bad = (
            sum(len(re.findall(rf"\b({words})\b", text)) for text in texts)
            for words in ("love|loved|great|perfect", "hate|hated|terrible|broken")
        )
        fractions.append(good / (good + bad))
    assert fractions == sorted(fractions)
    assert fractions[0] < 0.3 and 0.35 < fractions[2] < 0.75 and fractions[4] > 0.8
