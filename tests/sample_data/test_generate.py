"""The embedded sample data: reproducible, well-formed, varied, and learnable but not trivial."""

import hashlib
from collections import Counter
from itertools import islice
from statistics import mean, median

import pytest

from sample_data import generate
from sample_data.products import KINDS

LINES = generate.OUTPUT.read_text(encoding="utf-8").splitlines()
LABELS = [line.startswith("__label__2 ") for line in LINES]
TEXTS = [line.split(" ", 1)[1] for line in LINES]
LENGTHS = sorted(len(text.split()) for text in TEXTS)


def test_committed_file_is_what_the_generator_writes(tmp_path):
    output = tmp_path / "again.txt"
    generate.main(["--output", str(output)])
    assert output.read_bytes() == generate.OUTPUT.read_bytes()


def test_options(tmp_path):
    output = tmp_path / "few.txt"
    generate.main(["--output", str(output), "--seed", "8", "--reviews", "20"])
    assert output.read_text(encoding="utf-8") == generate.render(seed=8, count=20)
    assert generate.render(8, 20) != generate.render(7, 20)
    assert generate.render(7, 2000).startswith(generate.render(7, 20))


def test_format():
    assert len(LINES) == generate.REVIEWS
    assert generate.OUTPUT.stat().st_size < 1_000_000
    for line in LINES:
        assert line.startswith(("__label__1 ", "__label__2 "))
        title, separator, body = line.split(" ", 1)[1].partition(": ")
        assert title.strip() and separator and body.strip()
        assert "{" not in line and "* " not in line and line.isprintable()


def test_lengths_have_a_long_tail():
    assert LENGTHS[0] == 3
    assert 290 <= LENGTHS[-1] <= 300
    assert 40 <= mean(LENGTHS) <= 70
    assert median(LENGTHS) < mean(LENGTHS)
    assert sum(length == 3 for length in LENGTHS) > 20
    assert sum(length > 250 for length in LENGTHS) > 10


def test_labels_are_balanced():
    assert 0.47 < mean(LABELS) < 0.53


def test_no_text_appears_twice():
    assert len({text.casefold() for text in TEXTS}) == len(TEXTS)


def test_every_kind_of_product_with_both_labels():
    reviews = list(islice(generate.reviews(), generate.REVIEWS))
    counts = Counter((review.kind, review.positive) for review in reviews)
    assert len(KINDS) >= 10
    assert set(counts) == {(kind.name, label) for kind in KINDS for label in (True, False)}
    assert min(counts.values()) > 0.5 * len(reviews) / len(counts)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_aspect_has_words_and_clauses_for_both_sides(kind):
    assert len(kind.aspects) >= 5 and len(kind.facts) >= 4
    for aspect in kind.aspects:
        assert all((aspect.praise, aspect.complaint, aspect.pros, aspect.cons))


@pytest.mark.parametrize(
    ("words", "seed"), [(words, seed) for words in (3, 12, 60, 304) for seed in range(25)]
)
def test_a_reviewer_keeps_to_the_length(words, seed):
    dice = generate.Dice(seed)
    title, body = generate.Reviewer(dice, dice.pick(KINDS), seed % 2 == 0, words).write()
    written = len(f"{title} {body}".split())
    assert written <= max(words, 25) and written <= generate.MAX_WORDS
    assert written > 0.75 * words - 10


def accuracy(vectorizer, regularization=1.0):
    """Test accuracy of a linear model on a fifth of the texts, chosen by hash."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    held_out = [int(hashlib.sha256(text.encode()).hexdigest(), 16) % 5 == 0 for text in TEXTS]
    rows = list(zip(TEXTS, LABELS, held_out, strict=True))
    train = [(text, label) for text, label, test in rows if not test]
    test = [(text, label) for text, label, test in rows if test]
    model = make_pipeline(vectorizer, LogisticRegression(C=regularization, max_iter=1000))
    model.fit(*zip(*train, strict=True))
    return model.score(*zip(*test, strict=True))


def test_words_alone_learn_much_and_word_pairs_learn_more():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    words = accuracy(text.CountVectorizer())
    pairs = accuracy(text.CountVectorizer(ngram_range=(1, 2)))
    assert 0.85 <= words <= 0.965
    assert words + 0.01 <= pairs <= 0.975


def test_hashed_word_pairs_pass_the_quality_gate():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    hashed = text.HashingVectorizer(n_features=2**16, ngram_range=(1, 2))
    assert 0.90 <= accuracy(hashed, regularization=30) <= 0.975
