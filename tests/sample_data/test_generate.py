"""The embedded sample data: reproducible, well-formed, varied, and learnable but not trivial."""

import re
from statistics import mean, median

from sample_data import generate
from tests.e2e import everyday

LINES = generate.OUTPUT.read_text(encoding="utf-8").splitlines()
LABELS = [line.startswith("__label__2 ") for line in LINES]
TEXTS = [line.split(" ", 1)[1] for line in LINES]
LENGTHS = [len(text.split()) for text in TEXTS]


def test_committed_file_is_what_the_generator_writes(tmp_path):
    output = tmp_path / "again.txt"
    generate.main(["--output", str(output)])
    assert output.read_bytes() == generate.OUTPUT.read_bytes()


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
