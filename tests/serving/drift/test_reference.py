"""The reviews that a pushed model keeps."""

import subprocess
import sys

import numpy as np
import pytest

from core.errors import InputError
from preprocessing.labels import SENTIMENT, Labels
from serving.drift import reference

TOPICS = Labels(("billing", "delivery", "refund"))


def rows(random, number, classes):
    shape = (number, *classes.scores_shape)
    texts = [f"Größe {n}".encode() for n in range(number)]
    return (
        random.integers(1 << 32, size=number),
        random.random(shape),
        texts,
        random.integers(2, size=number),
    )


@pytest.mark.parametrize("classes", [SENTIMENT, TOPICS])
def test_the_reviews_of_all_parts_are_those_of_the_whole(tmp_path, monkeypatch, classes):
    monkeypatch.setattr(reference, "TEXTS", 30)
    hashes, scores, texts, labels = rows(np.random.default_rng(0), 500, classes)
    whole = reference.select(hashes, scores, texts, labels, 100)
    parts = [
        reference.select(hashes[here], scores[here], texts[here], labels[here], 100)
        for here in (slice(0, 40), slice(40, 300), slice(300, 500))
    ]
    merged = reference.merge([reference.merge(parts[:2]), parts[2]])
    order = np.argsort(hashes)[:100]
    folder = tmp_path / "assets.extra"
    folder.mkdir()
    reference.write(str(tmp_path / reference.KEPT_FILE), merged.reviews)
    for found in (whole.reviews, reference.read(str(tmp_path), classes)):
        np.testing.assert_array_equal(found.scores, scores[order].astype(np.float32))
        np.testing.assert_array_equal(found.labels, labels[order])
        assert list(found.texts) == [texts[n] for n in order[:30]]


def test_a_long_text_ends_at_a_whole_character():
    assert reference.beginning("é日".encode() * 5000) == "é日".encode() * 500
    assert reference.beginning(b"short \xff") == b"short "


def test_the_number_of_probabilities_is_limited():
    assert reference.rows(SENTIMENT) == 20_000
    assert reference.rows(Labels(tuple(map(str, range(100))))) == 5_000
    assert reference.rows(Labels(tuple(map(str, range(9_000))))) == 200


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / reference.KEPT_FILE).write_bytes(b"PAR1")
    with pytest.raises(
        InputError, match=r"drift_reference.parquet is damaged .*push the model again"
    ):
        reference.read(str(tmp_path), SENTIMENT)


def test_a_command_that_ends_after_the_reading_has_its_own_exit_code(tmp_path):
    hashes, scores, texts, labels = rows(np.random.default_rng(0), 500, SENTIMENT)
    (tmp_path / "assets.extra").mkdir()
    kept = reference.select(hashes, scores, texts, labels, 500).reviews
    reference.write(str(tmp_path / reference.KEPT_FILE), kept)
    code = """
import sys
from preprocessing.labels import SENTIMENT
from serving.drift import reference
for _ in range(200):
    reference.read(sys.argv[1], SENTIMENT)
sys.exit(2)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert [subprocess.run(command).returncode for _ in range(3)] == [2, 2, 2]
