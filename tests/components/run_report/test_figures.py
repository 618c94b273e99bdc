"""The figures of a report: the counts of the input, explained mistakes."""

import pytest

from components.run_report.evaluation import read_evaluation
from components.run_report.input_data import read_input
from components.run_report.mistakes import explain
from tests.components.run_report.artifacts import HOSTILE, REVIEWS, write_run


def test_the_evaluation_and_the_mistakes_are_those_of_the_evaluator(tmp_path):
    run = write_run(tmp_path)
    found = read_evaluation(run.uris["evaluation"])
    assert found.examples == len(REVIEWS)
    assert found.confusion == [[2, 1], [1, 2]]
    assert found.curve[0][:3] == (1.0, 0.0, 0.0)
    assert found.curve[-1] == (0.0, 1.0, 1.0, 0.5)
    assert found.tenths == [
        (0.1, pytest.approx(0.1, abs=1e-4), 2, 1),
        (0.9, pytest.approx(0.9, abs=1e-4), 1, 2),
    ]
    explained = explain(run.uris["evaluation"], run.uris["model"])
    assert {each.text for each in explained} == {f"good {HOSTILE}", REVIEWS[-1][0]}
    assert {each.probability for each in explained} == {0.9, 0.1}
    [mistake] = [each for each in explained if each.label == 0]
    assert mistake.parts[0].text == "good"
    assert mistake.parts[0].effect > 4


def test_the_lines_of_each_file_and_the_reasons(tmp_path):
    found = read_input(write_run(tmp_path).uris["rejected"])
    first, second = found.files
    assert (first.name, first.read, first.rejected, first.duplicates) == ("a.csv", 18, 2, 0)
    assert (second.name, second.read, second.neutral, second.duplicates) == ("b.csv", 14, 3, 1)
    assert (found.total.read, found.total.examples["train"]) == (32, 16)
    # The columns of a row add up to the lines of the file; lost bytes are no lines.
    for file in (first, second, found.total):
        parts = (file.duplicates, file.neutral, file.over_cap, file.rejected)
        assert sum(parts) + sum(file.examples.values()) == file.read
    assert (found.total.over_cap, found.total.lost_bytes) == (4, 1000)
    assert [(reason.name, reason.lines) for reason in found.reasons] == [
        ("bad_label", 2),
        ("duplicate_across_splits", 1),
    ]
    assert found.reasons[0].samples == ["a.csv:7 no label <b>9</b>", "a.csv:9 no label"]


def test_many_files_are_listed_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("components.run_report.input_data._FILES_SHOWN", 1)
    found = read_input(write_run(tmp_path).uris["rejected"])
    assert (len(found.files), found.more_files, found.total.read) == (1, 1, 32)
