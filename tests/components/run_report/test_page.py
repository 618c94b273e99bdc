"""A report: its figures, each in its section, the verdict, failed runs, hostile text."""

import dataclasses
import html
import re

import numpy as np
import pytest

from components.evaluator.counts import Counts
from components.evaluator.files import CANDIDATE, WHOLE
from components.run_report.history import Run
from components.run_report.input_data import read_input
from components.run_report.page import collect, render
from preprocessing.labels import LABELS_FILE
from tests.components.run_report.artifacts import (
    CHECK,
    HOSTILE,
    REVIEWS,
    of_topics,
    with_every_part,
    write_run,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def small(run):
    """The content of the run of `write_run`."""
    return collect(run)


@pytest.fixture(scope="module")
def content(small):
    return with_every_part(small)


@pytest.fixture(scope="module")
def page(content):
    return render(content)


def text_of(markup):
    """Return the text of HTML, with one space between two cells."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def test_the_evaluation_and_the_mistakes_are_those_of_the_evaluator(small):
    assert small.evaluation.candidate.confusion.tolist() == [[2, 1], [1, 2]]
    assert {each["text"] for each in small.mistakes} == {f"good {HOSTILE}", REVIEWS[-1][0]}
    [mistake] = [each for each in small.mistakes if each["label"] == 0]
    assert mistake["parts"][0].text == "good"
    assert mistake["parts"][0].effect > 4


def test_many_files_are_listed_in_part(run, monkeypatch):
    monkeypatch.setattr("components.run_report.input_data._FILES_SHOWN", 1)
    found = read_input(run.uris["rejected"])
    assert (len(found.files), found.more_files, found.total.lines) == (1, 1, 32)


@pytest.mark.parametrize("name", ["rejected", "statistics", "anomalies"])
@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_an_artifact_that_was_deleted_is_named_and_is_not_empty(run, tmp_path, name, folder):
    if folder == "empty":
        (tmp_path / folder).mkdir()
    titles = {"rejected": "input", "statistics": "class balance", "anomalies": "anomalies"}
    uris = {"examples": run.uris["examples"], name: str(tmp_path / folder)}
    content = collect(dataclasses.replace(run, uris=uris))
    [problem] = content.problems
    assert problem.startswith(f"{titles[name]}: {tmp_path / folder}")


def test_the_verdict_is_first(page):
    head = text_of(page[page.index("<header>") : page.index("<section")])
    verdict = "The model is blessed, but failed the serving check. It was not pushed."
    check = "accuracy is 0.9100, evaluation.min_accuracy requires 0.95"
    assert head.index(verdict) < head.index(check)
    assert "Serving check: the p99 latency of single requests is 310 ms" in head


SECTIONS = {
    "key": [
        "For comparison, always answering positive would give 0.5000.",
        "accuracy 0.9100 0.8907 – 0.9262 0.8500 +0.0600",
        "The model was trained on 16 reviews of a.csv, b.csv. Its answers are valid for texts of",
        "It also answers a text in another language",
    ],
    "check": [
        "process finished passed",
        "p99 ms 310.4 ms 250 ms failed",
        "golden positive 0.975 0.6 passed",
        "swapped <b>labels</b> were not checked.",
        "It <b>lasts</b> (labelled positive, answered negative with probability 0.687)",
    ],
    "input": [
        "duplicates left out by label over data.max_examples rejected",
        "a.csv 18 10 0 6 0 0 0 2",
        "b.csv 14 6 0 0 1 3 4 0",
        "all files 32 16 0 6 1 3 4 2",
        "1,000 bytes of the files cannot be read",
        "bad_label 2 a.csv:7 no label <b>9</b> a.csv:9 no label",
        "duplicate_across_splits 1",
        "train 40.0 % 60.0 %",
        "train: label: Unexpected values",
    ],
    "training": [
        "strategy OneDeviceStrategy (auto: one device)",
        "processes, replicas 1, 2",
        "devices of each process GPU:0, GPU:1",
        "peak memory 100 MiB",
        *("loss", "accuracy", "learning rate", "step"),
    ],
    "evaluation": [
        "length_bucket 20-49 50 0.7000 0.5625 – 0.8090 length_bucket 120- 950 1.0000",
        *("false positive rate", "precision of positive reviews"),
        "predicted probability of positive",
        "negative 450 50 positive 40 460",
    ],
    "mistakes": ["labelled negative, answered positive with probability 0.987 fine a<&'\" dull"],
    "components": ["ReviewExampleGen cached 0.1", "Trainer done 3.5"],
    "settings": [
        "python 3.10.13 tfx 1.16.0",
        "Settings that differ from the defaults training.model ngram_linear All settings "
        "cache True training.model ngram_linear",
    ],
}


def test_the_sections_follow_in_order_and_have_their_figures(page):
    found = re.findall(r'<section aria-labelledby="(\w+)">(.*?)</section>', page, re.DOTALL)
    sections = {name: text_of(body) for name, body in found}
    order = ["key", "mistakes", "check", "evaluation"]
    assert list(sections) == [*order, "training", "input", "components", "settings"]
    assert re.findall('<a href="#(.*?)">', page) == list(sections)
    for name, parts in SECTIONS.items():
        assert [part for part in parts if part not in sections[name]] == [], name


def test_the_colour_of_a_word_is_its_share_of_the_largest_effect(page):
    assert '<span class="positive" style="--share: 0.60">fine</span>' in page
    assert '<span class="negative" style="--share: 0.30">dull</span>' in page
    assert page.count('<div class="review">') == 20


@pytest.mark.parametrize(
    ("anomalies", "sentence"),
    [(None, "The data was not validated."), ([], "The data fits the schema.")],
)
def test_data_that_was_not_validated_is_not_called_valid(content, anomalies, sentence):
    # Charts take seconds to draw.
    found = render(content._replace(training={}, evaluation=None, anomalies=anomalies))
    assert re.findall("<p>(The data .*?)</p>", found) == [sentence]


def quick_page(run, uris=None, **changes):
    """Return the page of a run of which only some artifacts are left."""
    uris = {"rejected": run.uris["rejected"], **(uris or {})}
    return render(collect(dataclasses.replace(run, uris=uris, steps=(), **changes)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"blessed": False, "pushed_to": ""}, "The model is not blessed, and was not pushed."),
        ({"error": "Trainer: out of <memory>"}, "The run failed. Trainer: out of &lt;memory&gt;"),
        ({"blessed": None}, "The run did not evaluate a model."),
        ({"baseline": "version 7"}, "The baseline is version 7."),
        ({}, "There was no baseline, so the model was not compared with another one."),
    ],
)
def test_the_verdict_and_the_baseline(run, change, sentence):
    assert f">{sentence}<" in quick_page(run, **change)


def test_a_run_that_failed_in_its_first_component_has_a_report():
    page = render(collect(Run("amazon_reviews", "1", error="ReviewExampleGen: no file")))
    assert "ReviewExampleGen: no file" in page


def test_an_artifact_that_cannot_be_read_is_named_and_the_rest_is_shown(run, tmp_path):
    (tmp_path / "training.json").write_text('{"model": ')
    page = quick_page(run, {"model_run": str(tmp_path), "evaluation": str(tmp_path)})
    assert "Not available: training figures: JSONDecodeError" in page
    assert "Not available: evaluation: FileNotFoundError" in page
    assert "a.csv" in page


TOPICS = ("refund", "lost_card", "price in $ & €", HOSTILE, "$5 off $9", "never asked")


@pytest.fixture(scope="module")
def topics_page(small):
    return render(of_topics(small, TOPICS))


def test_the_first_lines_name_other_classes_and_classes_that_were_not_tested(topics_page):
    head = text_of(topics_page[topics_page.index("<header>") : topics_page.index("<nav")])
    assert (
        "The model was not compared with the served one: version 7 has other classes: it has "
        "negative, positive, and this model refund, lost_card, price in $ & €, "
    ) in head
    assert "recall was not checked for class never asked: the test split has no such texts" in head
    assert "The test split has no texts of the class never asked, so it was not tested." in head
    assert "Serving check: none were checked." in head
    assert "There was no baseline" not in head


def section(page, name):
    [found] = re.findall(rf'<section aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    return found


def test_classes_that_need_attention_are_first(topics_page):
    rows = re.findall(r"<tr>(.*?)</tr>", section(topics_page, "classes"), re.DOTALL)[1:]
    assert text_of(rows[0]) == "never asked not tested – – –"
    assert text_of(rows[1]) == (
        "refund 4 0.50 0.15 – 0.85 0.50 0.15 – 0.85 0.50 0.18 – 0.82 lost_card (2)"
    )
    assert len(rows) == len(TOPICS)


def test_confusions_have_numbers_and_texts(topics_page):
    found = section(topics_page, "confusions")
    assert "refund answered as lost_card : 2 texts, 50.0 % of the class" in text_of(found)
    assert f"where is {html.unescape(HOSTILE)} (0.90)" in html.unescape(text_of(found))
    assert found.count("<blockquote>") == 1
    names = re.findall(r"<text[^>]*>(.*?)</text>", found)
    assert "$5 off $9" in names
    assert "price in $ &amp; €" in names


def test_no_word_of_sentiment_is_on_a_page_of_topics(topics_page):
    body = topics_page[topics_page.index("<main>") :]
    shown = [name for name in ("key", "classes", "confusions", "mistakes", "evaluation")]
    text = " ".join(text_of(section(body, name)) for name in shown)
    assert not re.findall("negative|positive|review|sentiment", text)
    assert "labelled refund, answered lost_card with probability 0.900" in text


def test_a_check_without_golden_sentences_has_not_passed(topics_page):
    assert "golden sentences none not checked" in text_of(section(topics_page, "check"))


def test_of_many_classes_the_page_shows_those_that_are_confused_most(small):
    names = [f"topic {number}" for number in range(1000)]
    page = render(of_topics(small, names)._replace(mistakes=[]))
    assert len(page) < 1 << 20
    head = text_of(page[page.index("<header>") : page.index("<nav")])
    assert len(head) < 1500
    assert section(page, "classes").count("<tr>") == 100 + 2
    found = section(page, "confusions")
    assert "The 25 of 1,000 classes that are confused most." in text_of(found)
    assert len(re.findall(r"<text[^>]*>topic \d+</text>", found)) == 2 * 25
    assert "predicted topic" not in page


def test_a_perfect_model_of_many_classes_has_no_picture_of_confusions(small):
    content = of_topics(small, [f"topic {number}" for number in range(30)])
    results = content.evaluation
    answers = np.arange(30)
    perfect = Counts.from_predictions(answers, np.eye(30), results.labels)
    results = results._replace(slices={WHOLE: {CANDIDATE: perfect}})
    page = render(content._replace(evaluation=results, mistakes=[]))
    assert "confusions" not in page[page.index("<main>") :]
    assert "accuracy 1.0000" in text_of(section(page, "key"))


def test_an_early_run_has_a_report(tmp_path):
    # It has no files of the classes, and no predicted classes of golden sentences.
    run = write_run(tmp_path)
    for name in ("examples", "evaluation"):
        (tmp_path / name / LABELS_FILE).unlink()
    content = collect(run)
    assert (content.problems, len(content.mistakes)) == ([], 2)
    mistake = {"text": "It lasts", "label": "positive", "probability": 0.3}
    page = render(content._replace(check={**CHECK, "golden_mistakes": [mistake]}))
    assert "answered negative with probability 0.700" in section(page, "check")


def test_a_check_without_the_classes_has_a_report(content):
    page = render(content._replace(evaluation=None, labels=None, mistakes=[]))
    assert "p99 ms" in text_of(section(page, "check"))
