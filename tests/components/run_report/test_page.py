"""The page of a report: the verdict, what a failed run lacks, and hostile text."""

import dataclasses
import re

import pytest

from components.run_report.history import Sources
from components.run_report.page import collect, render
from tests.components.run_report.artifacts import write_run

LARGEST = 5_000_000  # bytes


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"))


def without_model(sources, uris=None, **changes):
    """Return the page of the run without its model, so that it is ready quickly."""
    uris = {name: uri for name, uri in (sources.uris | (uris or {})).items() if name != "model"}
    return render(collect(dataclasses.replace(sources, uris=uris, **changes)))


@pytest.fixture(scope="module")
def page(sources):
    return render(collect(sources))


def test_the_page_needs_no_other_file(page):
    assert len(page.encode()) < LARGEST
    assert "<script" not in page
    references = re.findall(r"(?:src|href)=[\"']?([^\"' >]+)", page.replace("&#34;", '"'))
    assert {reference for reference in references if not reference.startswith(("#", "data:"))} <= {
        "x"  # In the text of the hostile review.
    }
    assert not re.findall(r"url\((?!#)", page)


def test_the_text_of_a_review_is_no_markup(page):
    assert "<script>document" not in page
    assert "<img" not in page
    assert "<b>9</b>" not in page


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "The model is blessed, and was pushed to /models/1."),
        ({"pushed_to": ""}, "The model is blessed. It was not pushed."),
        ({"blessed": False, "pushed_to": ""}, "The model is not blessed, and was not pushed."),
        ({"failure": "Trainer: out of memory"}, "The run failed. Trainer: out of memory"),
        ({"blessed": None}, "The run did not evaluate a model."),
    ],
)
def test_the_verdict(sources, change, verdict):
    page = without_model(sources, **change)
    assert f'id="verdict">{verdict}<' in page


@pytest.mark.parametrize(
    ("baseline", "sentence"),
    [
        ("version 7", "The baseline is version 7."),
        ("", "There was no baseline, so the model was not compared with another one."),
    ],
)
def test_the_page_names_the_baseline(sources, baseline, sentence):
    page = without_model(sources, baseline=baseline)
    assert f">{sentence}<" in page
    # The evaluation itself has no values of a baseline.
    assert ">difference<" not in page


def test_a_run_that_failed_in_its_first_component_has_a_report():
    page = render(collect(Sources("amazon_reviews", "1", failure="ReviewExampleGen: no file <x>")))
    assert "ReviewExampleGen: no file &lt;x&gt;" in page


def test_a_damaged_artifact_is_named_and_the_rest_is_shown(sources, tmp_path):
    broken = tmp_path / "model_run"
    broken.mkdir()
    (broken / "training.json").write_text('{"model": ')
    page = without_model(sources, {"model_run": str(broken)})
    assert "Not available: training figures: JSONDecodeError" in page
    assert "a.csv" in page


def test_an_evaluation_by_an_earlier_version_is_named(sources, tmp_path):
    page = without_model(sources, {"evaluation": str(tmp_path)})
    assert "counts.json: an earlier version evaluated" in page
