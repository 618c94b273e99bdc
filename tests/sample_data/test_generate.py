"""The embedded sample data: reproducible, well-formed, varied, and learnable but not trivial."""

import hashlib
import re
from collections import Counter
from itertools import islice
from statistics import mean, median

import pytest

from sample_data import generate, verbs
from sample_data.dice import Dice
from sample_data.products import KINDS
from sample_data.reviewer import MAX_WORDS, Reviewer
from sample_data.slips import Typist, mistype
from sample_data.speaker import Speaker
from tests.e2e import everyday

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
    assert generate.OUTPUT.stat().st_size < 3_000_000
    for line in LINES:
        assert line.startswith(("__label__1 ", "__label__2 "))
        title, separator, body = line.split(" ", 1)[1].partition(": ")
        assert all((title.strip(), separator, body.strip()))
        assert line.isprintable()
        assert not {"{", "}", "*"} & set(line)


def test_lengths_have_a_long_tail():
    assert LENGTHS[0] == 3
    assert 290 <= LENGTHS[-1] <= 300
    assert 8 <= mean(LENGTHS) <= 20
    assert median(LENGTHS) < mean(LENGTHS)
    assert sum(length == 3 for length in LENGTHS) > 20
    assert sum(length > 250 for length in LENGTHS) > 10


def test_labels_are_balanced():
    assert 0.47 < mean(LABELS) < 0.53


def test_no_text_appears_twice():
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


@pytest.mark.parametrize("favourable", [True, False])
def test_plain_sentences_are_short_whole_and_varied(favourable):
    dice = Dice(5)
    sentences = [Speaker(dice).say(favourable) for _ in range(3000)]
    assert len(set(sentences)) > 2000
    assert median(len(sentence.split()) for sentence in sentences) <= 6
    assert not {"{", "}", "(", ")", "|"} & set("".join(sentences))


@pytest.mark.parametrize(
    ("phrase", "forms"),
    [
        ("fall apart", ("falls apart", "fell apart", "fallen apart", "falling apart")),
        (
            "stop working",
            ("stops working", "stopped working", "stopped working", "stopping working"),
        ),
        ("die", ("dies", "died", "died", "dying")),
        ("dry", ("dries", "dried", "dried", "drying")),
        ("really like", ("really likes", "really liked", "really liked", "really liking")),
        ("do the job", ("does the job", "did the job", "done the job", "doing the job")),
    ],
)
def test_verbs_are_inflected(phrase, forms):
    inflect = (verbs.third, verbs.past, verbs.perfect, verbs.progressive)
    assert tuple(form(phrase) for form in inflect) == forms


def test_every_kind_of_product_with_both_labels():
    reviews = list(islice(generate.reviews(), generate.REVIEWS))
    counts = Counter((review.kind, review.positive) for review in reviews)
    assert len(KINDS) >= 10
    assert set(counts) == {(kind.name, label) for kind in KINDS for label in (True, False)}
    assert min(counts.values()) > 0.5 * len(reviews) / len(counts)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_aspect_has_words_and_clauses_for_both_sides(kind):
    assert len(kind.aspects) >= 5
    assert len(kind.facts) >= 4
    for aspect in kind.aspects:
        assert all((aspect.praise, aspect.complaint, aspect.pros, aspect.cons))


@pytest.mark.parametrize("words", [3, 12, 60, 304])
def test_a_reviewer_keeps_to_the_length(words):
    for seed in range(50):
        dice = Dice(seed)
        title, body = Reviewer(dice, dice.pick(KINDS), seed % 2 == 0, words).write()
        written = len(f"{title} {body}".split())
        assert 0.75 * words - 10 < written <= min(max(words, 25), MAX_WORDS)


def test_typos_are_rare():
    dice = Dice(1)
    words = ["comfortable"] * 50
    typed = [word for _ in range(400) for word in Typist(dice).type(" ".join(words)).split()]
    assert 0.005 < mean(word != "comfortable" for word in typed) < 0.02
    assert mistype(dice, "bad") == "bad"


def accuracy(vectorizer, regularization=1.0):
    """Accuracy of a linear model trained on 80 % and tested on 20 %, split by hash."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    held_out = [int(hashlib.sha256(text.encode()).hexdigest(), 16) % 5 == 0 for text in TEXTS]
    features = vectorizer.fit_transform(TEXTS)
    train = [row for row, held in enumerate(held_out) if not held]
    test = [row for row, held in enumerate(held_out) if held]
    model = linear_model.LogisticRegression(C=regularization, solver="liblinear")
    model.fit(features[train], [LABELS[row] for row in train])
    return model.score(features[test], [LABELS[row] for row in test])


def test_words_alone_learn_much_and_word_pairs_learn_more():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    words = accuracy(text.CountVectorizer())
    pairs = accuracy(text.CountVectorizer(ngram_range=(1, 2)))
    assert 0.85 <= words <= 0.965
    assert words + 0.01 <= pairs <= 0.97


def test_hashed_word_pairs_pass_the_quality_gate():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    hashed = text.HashingVectorizer(n_features=2**16, ngram_range=(1, 2))
    assert 0.90 <= accuracy(hashed, regularization=30) <= 0.97
