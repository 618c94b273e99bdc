"""A report: its figures, each in its section, the verdict, failed runs, hostile text."""

import dataclasses
import html
import re

import numpy as np
import pytest

from components.evaluator.counts import Counts
from components.evaluator.files import CANDIDATE, WHOLE
from components.evaluator.thresholds import Evaluation
from components.run_report import words
from components.run_report.content import collect
from components.run_report.history import Run
from components.run_report.input_data import read_input
from components.run_report.page import render
from components.run_report.summary import decision
from components.run_report.verdict import judge
from components.serving_check.results import CheckResults
from preprocessing.labels import LABELS_FILE
from tests.components.run_report.artifacts import (
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
    markup = re.sub("</?bdi>", "", markup)  # inline elements
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def test_the_evaluation_and_the_mistakes_are_those_of_the_evaluator(small):
    assert small.evaluation.candidate.confusion.tolist() == [[2, 1], [1, 2]]
    assert {each.text for each in small.mistakes} == {f"good {HOSTILE}", REVIEWS[-1][0]}
    [mistake] = [each for each in small.mistakes if each.label == 0]
    assert mistake.parts[0].text == "good"
    assert mistake.parts[0].effect > 4


def test_the_time_of_a_cached_training_is_not_one_of_the_run(small):
    steps = [step._replace(state="cached") for step in small.run.steps]
    page = render(small._replace(run=dataclasses.replace(small.run, steps=steps)))
    tile = "Time of the run 3.7 s training in an earlier run 7.5 s, 1,234 texts a second"
    assert tile in text_of(page)


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
    verdict = (
        "The model is blessed, but failed the serving check and was not pushed. The p99 latency of "
        "single requests is 310 ms, serving_check.max_p99_ms allows 250."
    )
    tiles = (
        "Accuracy 0.9100 95 % interval 0.8907 – 0.9262",
        "vs. constant answer +0.4100 always answering positive would give 0.5000",
        "vs. served model +0.0600 the served model has 0.8500 on the same test reviews",
        "Reviews 22 16 to train, 6 to test",
        "Time of the run 3.7 s training 7.5 s, 1,234 texts a second",
    )
    check = "accuracy is 0.9100, evaluation.min_accuracy requires 0.95"
    found = [head.index(part) for part in (verdict, *tiles, check)]
    assert found == sorted(found)
    assert re.search(r"Size of the model \d+\.\d (K|M)iB", head)
    # A tile breaks no line between a number and its unit.
    assert '<dd class="value">3.7\N{NO-BREAK SPACE}s</dd>' in page


SECTIONS = {
    "key": [
        "For comparison, always answering positive would give 0.5000.",
        "accuracy 0.9100 0.8907 – 0.9262",
        "The model was trained on 16 reviews of a.csv, b.csv. Its answers are valid for texts of",
        "It also answers a text in another language",
    ],
    "check": [
        "serving process finished passed",
        "slowest 1 % of requests with one text take at least 310.4 ms 250 ms failed",
        "golden sentences of positive 0.975 0.6 passed",
        "swapped <b>labels</b> were not checked.",
        "It <b>lasts</b> (labelled positive, answered negative with probability 0.687)",
    ],
    "input": [
        "duplicates left out by label over data.max_examples rejected",
        "a.csv 18 10 0 6 0 0 0 2",
        "b.csv 14 6 0 0 1 3 4 0",
        "all files 32 16 0 6 1 3 4 2",
        "1,000 bytes of the files cannot be read",
        "the label is missing or unknown 2 a.csv:7 no label <b>9</b> a.csv:9 no label",
        "the same text is in a held-out split 1",
        "train 40.0 % 60.0 %",
        "train: label: Unexpected values",
    ],
    "training": [
        "hyperparameters scale_floor 0.3, compressed False highest learning rate 0.01235 strategy ",
        "strategy OneDeviceStrategy (auto: one device)",
        "processes, replicas 1, 2",
        "devices of each process GPU:0, GPU:1",
        "peak memory 100.0 MiB",
    ],
    "slices": ["20–49 words 50 0.7000 0.5625 – 0.8090 120– words 950 1.0000"],
    "pictures": [
        "Confusion 910 of 1,000 test reviews are on the diagonal: the right answers. The most "
        "frequent mistake: negative reviews answered as positive, 50 of 500 (10.0 %).",
        "Scores by class The model finds the negative reviews least reliably: 450 of 500, a recall "
        "of 0.90 (",
        "Training The loss of the eval split hardly changed after epoch 1 of 2",
        "Calibration On average the predicted probability of positive differs by ",
    ],
    "more": [
        *("accuracy", "learning rate", "step", "false positive rate"),
        *("precision of positive reviews", "predicted probability of positive"),
    ],
    "confusion": ["negative 450 50 positive 40 460"],
    "changes": [
        "This model gets 2 test reviews wrong that version 7 got right, and 62 right that version "
        "7 got wrong. Chance alone seldom makes such a difference (sign test, p below 0.001).",
        "on the same test reviews version 7 this model difference accuracy 0.8500 0.9100 +0.0600",
        "Settings setting version 7 this model training.epochs 2 3",
        "Code part version 7 this model tfx 1.16.0 1.21.0",
        "Unchanged: data.",
        "Reviews that the new model gets wrong and the old one got right it <b>was</b> fine "
        "labelled positive, answered negative with probability 0.900",
    ],
    "drift": [
        "Alarm of severity high (words, accuracy): retrain with these reviews.",
        "1,500 reviews of the newest span, scored by the served model, against 1,480 of the ",
        "words a classifier of <b>words</b> 0.6400 – 0.6800 p = 0.002",
        "accuracy the accuracy is 0.7800 0.7600 – 0.8000 p < 0.001",
        "estimate the accuracy is estimated 0.8600 – 0.9000 –",
        "differ most: the <kettle> 12.4 % (before 0.2 %).",
    ],
    "mistakes": [
        "20 reviews labelled negative, answered positive: the word “fine” answered positive with "
        "probability 0.987 fine a<&'\" dull"
    ],
    "components": ["ReviewExampleGen cached 0.1 s", "Trainer done 3.5 s"],
    "settings": [
        "python 3.10.13 tfx 1.16.0",
        "Settings that differ from the defaults training.model ngram_linear All settings "
        "cache True training.model ngram_linear",
    ],
}


def test_the_sections_follow_in_order_and_have_their_figures(page):
    order = ["changes", "drift", "pictures", "mistakes", "details"]
    assert re.findall(r'<section aria-labelledby="(\w+)"', page) == order
    assert re.findall('<a href="#(.*?)">', page) == order
    folded = ["key", "slices", "more", "confusion", "check", "training", "input", "components"]
    assert re.findall(r'<details id="(\w+)">', page) == [*folded, "settings"]
    for name, parts in SECTIONS.items():
        text = text_of(section(page, name))
        assert [part for part in parts if part not in text] == [], name


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
    found = render(content._replace(training=None, evaluation=None, anomalies=anomalies))
    assert re.findall("<p>(The data .*?)</p>", found) == [sentence]


def quick_page(run, uris=None, **changes):
    """Return the page of a run of which only some artifacts are left."""
    uris = {"rejected": run.uris["rejected"], **(uris or {})}
    return render(collect(dataclasses.replace(run, uris=uris, steps=(), **changes)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"blessed": False, "pushed_to": ""}, "The model is not blessed and was not pushed."),
        ({"error": "Trainer: out of <memory>"}, "The run failed."),
        ({"error": "Trainer: out of <memory>"}, "Trainer: out of &lt;memory&gt;."),
        ({"blessed": None}, "The run did not evaluate a model."),
        ({"pushed_to": ""}, "The model is blessed and was not pushed."),
        ({}, "The model is blessed and was pushed."),
    ],
)
def test_the_verdict_says_what_became_of_the_model(run, change, sentence):
    assert f"<p>{sentence}</p>" in quick_page(run, **change)


def test_the_verdict_has_the_number_that_decided_it(content):
    reached = content.evaluation._replace(
        settings=Evaluation(min_accuracy=0.9, max_accuracy_drop=0.1)
    )
    blessed = content._replace(check=None, training=None, evaluation=reached)
    assert judge(decision(blessed)).explanation == (
        "Accuracy is 0.9100, evaluation.min_accuracy requires 0.9."
    )
    missed = content._replace(check=None, run=dataclasses.replace(content.run, blessed=False))
    assert judge(decision(missed)).explanation == (
        "Accuracy is 0.9100, evaluation.min_accuracy requires 0.95."
    )


def test_the_page_shows_where_the_model_is(run):
    assert 'Pushed to <span class="mono">/models/1</span>' in quick_page(run)
    assert "Pushed to" not in quick_page(run, pushed_to="")


def test_a_first_model_is_compared_with_none(small):
    page = render(small._replace(training=None, mistakes=[]))
    assert "No other model was served, so there is nothing to compare with." in page
    assert "vs. served model – no other model was served" in text_of(page)


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
    assert "vs. served model – it has other classes" in head


def section(page, name):
    """Return a section or a folded part of a page."""
    start = re.search(rf'<(section aria-labelledby|details id)="{name}"', page)
    rest = page[start.start() :]
    end = re.search(r"</section>|<details id=", rest[1:])
    return rest[: end.start() + 1]


def test_classes_that_need_attention_are_first(topics_page):
    rows = re.findall(r"<tr>(.*?)</tr>", section(topics_page, "classes"), re.DOTALL)[1:]
    assert text_of(rows[0]) == "never asked not tested – – –"
    assert text_of(rows[1]) == (
        "refund 4 0.50 0.15 – 0.85 0.50 0.15 – 0.85 0.50 0.18 – 0.82 lost_card (2)"
    )
    assert len(rows) == len(TOPICS)


def test_confusions_have_numbers_and_texts(topics_page):
    found = section(topics_page, "mistakes")
    assert "refund answered as lost_card: 2 texts, 50.0 % of the class" in text_of(found)
    assert f"where is {html.unescape(HOSTILE)} (0.90)" in html.unescape(text_of(found))
    assert found.count("<blockquote>") == 1
    names = re.findall(r"<text[^>]*>(.*?)</text>", section(topics_page, "pictures"))
    assert "$5 off $9" in names
    assert "price in $ &amp; €" in names


def test_no_word_of_sentiment_is_on_a_page_of_topics(topics_page):
    body = topics_page[topics_page.index("<main>") :]
    shown = ("key", "classes", "mistakes", "pictures", "confusion")
    text = " ".join(text_of(section(body, name)) for name in shown)
    assert not re.findall("negative|positive|review|sentiment", text)
    assert "1 text labelled refund, answered lost_card answered lost_card with probability" in text


def test_a_check_without_golden_sentences_has_not_passed(topics_page):
    assert "golden sentences none not checked" in text_of(section(topics_page, "check"))


def test_of_many_classes_the_page_shows_those_that_are_confused_most(small):
    names = [f"topic {number}" for number in range(1000)]
    page = render(of_topics(small, names)._replace(mistakes=[]))
    assert len(page) < 1 << 20
    head = text_of(page[page.index("<header>") : page.index("<nav")])
    assert len(head) < 1500
    assert section(page, "classes").count("<tr>") == 100 + 1
    found = section(page, "pictures")
    assert "Shown are the 25 of 1,000 classes that are confused most." in text_of(found)
    assert "Shown are the 15 of 1,000 classes with the lowest F1." in text_of(found)
    assert len(re.findall(r"<text[^>]*>topic \d+</text>", found)) == 2 * 25 + 15
    assert "answered topic" not in section(page, "key")
    assert 'id="confusion"' not in page


def test_a_perfect_model_of_many_classes_has_no_picture_of_confusions(small):
    content = of_topics(small, [f"topic {number}" for number in range(30)])
    results = content.evaluation
    answers = np.arange(30)
    perfect = Counts.from_predictions(answers, np.eye(30), results.labels)
    results = results._replace(slices={WHOLE: {CANDIDATE: perfect}})
    page = render(content._replace(evaluation=results, mistakes=[]))
    assert "on the diagonal" not in page
    assert 'id="mistakes"' not in page
    assert "accuracy 1.0000" in text_of(section(page, "key"))


def test_an_early_run_has_a_report(tmp_path):
    # It has no files of the classes, and no predicted classes of golden sentences.
    run = write_run(tmp_path)
    for name in ("examples", "evaluation"):
        (tmp_path / name / LABELS_FILE).unlink()
    content = collect(run)
    assert (content.problems, len(content.mistakes)) == ([], 2)
    mistake = {"text": "It lasts", "label": "positive", "probability": 0.3}
    check = CheckResults.from_json({"results": [], "golden_mistakes": [mistake]})
    page = render(content._replace(check=check))
    assert "answered negative with probability 0.700" in section(page, "check")


def test_a_check_without_the_classes_has_a_report(content):
    page = render(content._replace(evaluation=None, labels=None, mistakes=[]))
    assert "slowest 1 % of requests" in text_of(section(page, "check"))


@pytest.mark.parametrize("word", ["reviews", "texts"])
def test_the_throughput_has_the_same_words_for_reviews_and_for_other_texts(word):
    assert words.check_name(f"{word}_per_second") == "throughput"
    assert words.unit(f"{word}/s") == "a second"
