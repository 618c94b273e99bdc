"""`amazon-reviews predict` with the last pushed model."""

import pytest

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


def test_no_review_at_all_is_told(finished):
    workspace, _ = finished
    done = workspace.command("predict", stdin="")
    assert done.returncode == 2
    assert "no review given" in done.stderr
