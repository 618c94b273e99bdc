"""The exports of a month: which days have slang, swapped labels or summaries."""

import pytest

from sample_data import month
from sample_data.month import export, main

COUNT = 300


def parts(day, version=1):
    """Return the labels and the texts of an export."""
    lines = export(day, version, COUNT).splitlines()
    assert len(lines) == COUNT
    labels, texts = zip(*(line.split(" ", 1) for line in lines), strict=True)
    assert set(labels) == {"__label__1", "__label__2"}
    return labels, texts


def with_slang(texts):
    verdicts = [verdict for side in month._SLANG.values() for verdict in side]
    return sum(any(verdict in text for verdict in verdicts) for text in texts) / len(texts)


def test_slang_begins_in_the_middle_and_each_day_is_another():
    assert with_slang(parts(14)[1]) < 0.01
    assert 0.2 < with_slang(parts(15)[1]) < 0.4
    assert export(14, 1, COUNT) == export(14, 1, COUNT)
    assert len(set(parts(3)[1]) & set(parts(4)[1])) < 0.02 * COUNT


def test_the_correction_has_the_same_texts_with_the_other_labels():
    wrong, texts = parts(20, version=1)
    right, same = parts(20, version=2)
    assert texts == same
    assert all(one != other for one, other in zip(wrong, right, strict=True))
    # Another day has no mistake to correct.
    assert parts(21, version=1) == parts(21, version=2)


@pytest.mark.slow
def test_three_days_have_summaries_in_place_of_reviews():
    does = {"__label__1": " returns the ", "__label__2": " keeps the "}
    for day in (23, 24, 25, 26, 27):
        labels, texts = parts(day)
        assert len(set(texts)) == COUNT
        for label, text in zip(labels, texts, strict=True):
            is_summary = text.startswith("Summary: customer ") and does[label] in text
            assert is_summary == (24 <= day <= 26)
    whole = [export(day).splitlines() for day in (24, 25, 26)]
    assert len({line for lines in whole for line in lines}) == 3 * month.REVIEWS


def test_the_folders_are_spans_with_versions(tmp_path):
    main([str(tmp_path), "--day", "09", "--reviews", "5"])
    main([str(tmp_path), "--day", "20", "--version", "2", "--reviews", "5"])
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.txt")}
    assert files == {"2026-11-09/v1/reviews.txt", "2026-11-20/v2/reviews.txt"}
    assert len((tmp_path / "2026-11-09/v1/reviews.txt").read_text().splitlines()) == 5


def test_a_day_that_does_not_exist_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), "--day", "31"])
    # Python 3.12 and later write the value in quotation marks.
    assert "argument --day: invalid choice: 31" in capsys.readouterr().err.replace("'", "")
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), "--version", "2"])
    assert "--version 2: only day 20 is corrected" in capsys.readouterr().err
