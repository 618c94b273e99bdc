"""`amazon-reviews watch` as a command."""

import json
import re

import numpy as np
import pytest

from preprocessing.labels import LABELS_FILE, SENTIMENT, Labels, write_labels
from serving.drift import reference
from serving.drift.reference import ScoredReviews

pytestmark = pytest.mark.slow


def texts(number, *, good=0.5, topic="phone", seed=0):
    """Return texts, of which a share contains `good`."""
    random = np.random.default_rng(seed)
    words = [f"w{n}" for n in range(50)]
    return [
        f"{'good' if int((n + 1) * good) > int(n * good) else 'bad'} {topic} "
        + " ".join(random.choice(words, 8))
        for n in range(number)
    ]


def labels_of(found):
    """Return the labels of texts. The model is wrong about a tenth of them."""
    return [int("good" in text) ^ int(n % 10 == 0) for n, text in enumerate(found)]


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A folder of runs with a pushed model, which keeps reviews to compare with."""
    from tests.serving.models import push, push_classes

    root = tmp_path_factory.mktemp("watched")
    version = root / "serving" / "1"
    push(version)
    known = texts(400)
    scores = np.array([0.9 if "good" in text else 0.1 for text in known], np.float32)
    (version / "assets.extra").mkdir()
    kept = ScoredReviews(scores, [text.encode() for text in known], np.array(labels_of(known)))
    reference.write(str(version / reference.KEPT_FILE), kept)
    push_classes(root / "topics" / "1")
    return root


@pytest.fixture
def watch(watched, call, tmp_path, capfd):
    """Return a function that writes lines to a file, and returns the exit code and the output."""

    def do(lines, *words, name="new.txt"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        code = call("watch", "--input", str(tmp_path / name), *words, root=watched)
        return code, capfd.readouterr()

    return do


def test_reviews_like_the_old_ones_raise_no_alarm(watch):
    code, (out, _) = watch(texts(300, seed=1))
    assert code == 0
    lines = out.splitlines()
    assert "compared  300 new reviews with 400 of the test split" in lines
    assert lines[-1].startswith("result    no alarm: ")
    # There are no labels, and a line states it.
    assert any(line.startswith("labels    not read: ") for line in lines)
    assert not any(line.startswith("accuracy") for line in lines)


def test_labelled_reviews_of_any_format_have_an_accuracy(watch):
    new = texts(300, seed=2)
    rows = [
        {"rating": 5 if label else 1, "text": text}
        for text, label in zip(new, labels_of(new), strict=True)
    ]
    code, (out, _) = watch([*map(json.dumps, rows), '{"rating": 2}'], "--json", name="new.jsonl")
    found = json.loads(out)
    assert (code, found["is_alarm"], found["severity"]) == (0, False, "none")
    figures = {figure["name"]: figure for figure in found["figures"]}
    assert figures["accuracy"]["value"] == 0.9 and figures["accuracy"]["reference"] == 0.9
    assert figures["labels"]["p_value"] > 0.01
    assert (found["unlabelled"], found["total"], found["rejected"]) == ("", 300, {"no_text": 1})


def test_labels_have_the_scale_of_the_served_model(watch, watched):
    complaints = texts(300, good=0.0, seed=2)
    rows = ["label,text", *(f"{1 + n % 2},{text}" for n, text in enumerate(complaints))]
    assets = watched / "serving" / "1" / "assets"
    answers = {}
    for scale in ("", "1 to 5"):
        write_labels(str(assets), Labels(SENTIMENT.names, label_scale=scale))
        _, (out, _) = watch(rows, "--json", name="new.csv")
        figures = {figure["name"]: figure for figure in json.loads(out)["figures"]}
        answers[scale] = figures["accuracy"]["value"]
    (assets / LABELS_FILE).unlink()
    assert answers == {"": 0.5, "1 to 5": 1.0}


def test_reviews_without_a_label_among_others_are_compared(watch):
    usual, other = texts(100, seed=2), texts(400, topic="kettle", seed=3)
    pairs = zip(labels_of(usual), usual, strict=True)
    rows = [{"rating": 5 if label else 1, "text": text} for label, text in pairs]
    rows += [{"rating": None, "text": text} for text in other]
    rows.append({"rating": 3, "text": "so so"})
    code, (out, _) = watch(map(json.dumps, rows), name="new.jsonl")
    lines = out.splitlines()
    assert code == 4 and "kettle (80.0%, before 0.0%)" in out
    assert "compared  500 new reviews with 400 of the test split" in lines
    assert "labels    400 of 500 reviews have no label of a class of the model" in lines
    [accuracy] = [line for line in lines if line.startswith("accuracy")]
    assert "the accuracy is 0.9000, before 0.9000" in accuracy


def test_files_without_labels_beside_others_are_compared(watch, tmp_path):
    labelled, others = texts(100, seed=1), texts(300, seed=2)
    pairs = zip(labels_of(labelled), labelled, strict=True)
    (tmp_path / "a.csv").write_text("label,text\n" + "".join(f"{n},{text}\n" for n, text in pairs))
    lines = (json.dumps({"text": text}) for text in others[:200])
    (tmp_path / "b.jsonl").write_text("".join(f"{line}\n" for line in lines))
    files = [str(tmp_path / name) for name in ("a.csv", "b.jsonl")]
    code, (out, _) = watch(others[200:], *files)
    assert code == 0
    lines = out.splitlines()
    assert "compared  400 new reviews with 400 of the test split" in lines
    assert "labels    300 of 400 reviews have no label of a class of the model" in lines
    [accuracy] = [line for line in lines if line.startswith("accuracy")]
    assert accuracy.startswith("accuracy  the accuracy is 0.9000, before 0.9000")


def test_another_topic_is_an_alarm_with_its_words(watch):
    code, (out, _) = watch(texts(300, good=0.8, topic="bottle", seed=3))
    assert code == 4
    assert "new words" in out and "bottle (100.0%, before 0.0%)" in out
    assert "old words" in out and "phone (0.0%, before 100.0%)" in out
    assert out.splitlines()[-1].startswith("result    alarm of severity low (scores, words): ")


def test_a_figure_and_its_interval_have_one_unit(watch):
    _, (out, _) = watch(texts(300, seed=3))
    lines = {line.split()[0]: line for line in out.splitlines()}
    share = r"\d+\.\d%"
    assert re.search(rf" is {share} \(95 %: {share} to {share}, p", lines["scores"])
    assert re.search(rf"  {share} of the answers .* \(95 %: {share} to {share}, p", lines["unsure"])
    fraction = r"\d\.\d{4}"
    assert re.search(rf"{fraction} \(95 %: {fraction} to {fraction}\)$", lines["estimate"])


def test_an_alarm_starts_a_run_and_ends_with_its_exit_code(watch, tmp_path):
    # The run has no input, so it ends at once.
    words = ("--then", "run", "--set", f"data.input_base={tmp_path / 'missing'}")
    code, (out, error) = watch(texts(300, topic="bottle", seed=3), *words)
    assert code == 2 and "alarm" in out and "missing" in out + error
    code, (out, error) = watch(texts(300, seed=1), *words)
    assert code == 0 and "missing" not in out + error


@pytest.mark.parametrize(
    ("lines", "words", "message"),
    [
        (texts(5), (), "5 reviews; a comparison requires at least 20 reviews"),
        (texts(300), ("--input", "no/such/folder"), "matches no file"),
    ],
)
def test_an_input_that_cannot_be_compared_is_one_line(watch, lines, words, message):
    code, (out, error) = watch(lines, *words)
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert message in error


def test_a_model_without_reviews_to_compare_with_is_one_line(watch, watched):
    words = ("--set", f"paths.serving={watched / 'topics'}")
    code, (out, error) = watch(texts(300), *words)
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert "assets.extra/drift_reference.parquet is missing" in error
    assert "`amazon-reviews run`" in error


def test_labels_of_other_classes_are_not_read(watch, watched):
    from tests.serving.models import TOPICS

    version = watched / "topics" / "1"
    if not (version / "assets.extra").exists():
        (version / "assets.extra").mkdir()
    random = np.random.default_rng(0)
    scores = random.dirichlet(np.ones(5), 300).astype(np.float32)
    kept = ScoredReviews(scores, [b"c1 text"] * 300, TOPICS.decide(scores))
    reference.write(str(version / reference.KEPT_FILE), kept)
    try:
        lines = [f"__label__{n % 2 + 1} c{n % 5} text" for n in range(60)]
        words = ("--set", f"paths.serving={watched / 'topics'}", "--json")
        _, (out, _) = watch(lines, *words)
        assert "data.labels has the classes negative, positive" in json.loads(out)["unlabelled"]
        # With the settings of the run, the labels are those of the model.
        lines = [f"__label__true c4 text {n}" for n in range(60)]
        code, (out, _) = watch(lines, *words, "--set", "data.labels=each")
        found = json.loads(out)
        figures = {figure["name"]: figure for figure in found["figures"]}
        assert (code, found["unlabelled"]) == (4, "")
        assert figures["accuracy"]["value"] == 1.0 and "true" in figures["labels"]["sentence"]
        # A topic that the model does not know is no missing label: each answer for it is wrong.
        lines += [f"__label__new_topic c4 text {n}" for n in range(20)]
        code, (out, _) = watch([*lines, " c4 text"], *words, "--set", "data.labels=each")
        found = json.loads(out)
        figures = {figure["name"]: figure for figure in found["figures"]}
        assert (code, found["new_classes"]) == (4, ["new_topic"])
        assert found["unlabelled"] == "1 of 81 texts has no label of a class of the model"
        assert figures["accuracy"]["value"] == 0.75
        assert figures["labels"]["sentence"].startswith("25.0% of the labels are no class of the")
        code, (out, _) = watch(lines, *words[:2], "--set", "data.labels=each")
        assert "labels    no class of the model: new_topic; every answer for such texts is " in out
    finally:
        (version / reference.KEPT_FILE).unlink()


def test_a_large_input_is_compared_by_a_sample(watch, monkeypatch):
    monkeypatch.setattr(reference, "_ROWS", 200)
    code, (out, _) = watch(texts(900, seed=4))
    assert code == 0 and "200 new reviews, drawn from 900" in out
