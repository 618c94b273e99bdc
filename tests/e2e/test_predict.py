"""`amazon-reviews predict` with the last pushed model."""

import re
from pathlib import Path

import pytest

from tests.e2e.everyday import SENTENCES

README = Path(__file__).parents[2] / "README.md"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("finished")]


def answers(done):
    """Return (label, probability, text) of each line."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [(label, float(probability), text) for label, probability, text in lines]


def is_sure(probability):
    return 0 <= probability < 0.3 or 0.7 < probability <= 1


def test_the_examples_of_the_readme_are_answered_right_and_with_confidence(finished):
    workspace, _ = finished
    [command] = re.findall(r'^amazon-reviews predict (".+)$', README.read_text("utf-8"), re.M)
    texts = re.findall(r'"([^"]+)"', command)
    found = answers(workspace.command("predict", *texts))
    assert [(label, text) for label, _, text in found] == [
        ("negative", texts[0]),
        ("positive", texts[1]),
    ]
    assert all(is_sure(probability) for _, probability, _ in found)


def test_most_everyday_sentences_on_standard_input_are_classified_right(finished):
    workspace, _ = finished
    stdin = "\n\n".join(text for _, text in SENTENCES)
    found = answers(workspace.command("predict", stdin=stdin))
    assert [text for *_, text in found] == [text for _, text in SENTENCES]
    right = [
        is_sure(probability)
        for (expected, _), (label, probability, _) in zip(SENTENCES, found, strict=True)
        if label == expected
    ]
    assert len(SENTENCES) >= 120
    assert len(right) >= 0.92 * len(SENTENCES), found
    assert sum(right) >= 0.8 * len(SENTENCES), found


def test_a_missing_review_is_an_error(finished):
    workspace, _ = finished
    done = workspace.command("predict", stdin="")
    assert done.returncode == 2
    assert "no review given" in done.stderr
