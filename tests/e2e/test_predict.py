"""`amazon-reviews predict` with the last pushed model."""

import re
from pathlib import Path

import pytest

from tests.e2e.everyday import SENTENCES

README = Path(__file__).parents[2] / "README.md"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("finished")]


def test_arguments_are_answered_one_line_each(finished):
    workspace, _ = finished
    done = workspace.command("predict", "Terrible: broke at once, horrible", "Great: I love it")
    assert done.returncode == 0, done.stderr
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    assert [answer[0] for answer in answers] == ["negative", "positive"]
    assert all(0.0 <= float(answer[1]) <= 1.0 for answer in answers)
    assert answers[1][2] == "Great: I love it"
    assert done.stderr == ""


def test_lines_of_standard_input_are_answered(finished):
    workspace, _ = finished
    done = workspace.command("predict", stdin="Great: I love it\n\nAwful\n")
    assert [line.split("\t")[2] for line in done.stdout.splitlines()] == [
        "Great: I love it",
        "Awful",
    ]


def test_a_missing_review_is_an_error(finished):
    workspace, _ = finished
    done = workspace.command("predict", stdin="")
    assert done.returncode == 2
    assert "no review given" in done.stderr


def is_sure(probability):
    return not 0.3 <= probability <= 0.7


def test_most_everyday_sentences_are_classified_right_and_with_confidence(finished):
    workspace, _ = finished
    done = workspace.command("predict", stdin="\n".join(text for _, text in SENTENCES))
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    assert [answer[2] for answer in answers] == [text for _, text in SENTENCES]
    right = [
        (is_sure(float(probability)), text)
        for (label, text), (answer, probability, _) in zip(SENTENCES, answers, strict=True)
        if label == answer
    ]
    assert len(SENTENCES) >= 120
    assert len(right) >= 0.92 * len(SENTENCES), done.stdout
    assert sum(sure for sure, _ in right) >= 0.8 * len(SENTENCES), done.stdout


def test_the_examples_of_the_readme_are_answered_right_and_with_confidence(finished):
    workspace, _ = finished
    [command] = re.findall(r'^amazon-reviews predict (".+)$', README.read_text("utf-8"), re.M)
    done = workspace.command("predict", *re.findall(r'"([^"]+)"', command))
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    assert [answer[0] for answer in answers] == ["negative", "positive"]
    assert all(is_sure(float(answer[1])) for answer in answers), done.stdout
