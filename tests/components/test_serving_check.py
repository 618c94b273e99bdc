"""ServingCheck: a model in a new process, the checks that block its push, and their messages."""

import json
import re

import pytest
import tensorflow as tf
from tfx.types import artifact_utils, standard_artifacts

from components.evaluator import files
from components.sample import read_sample
from components.serving_check import probing
from components.serving_check.executor import Executor
from components.serving_check.golden import encode
from components.serving_check.settings import Serving
from serving.probe import Answer
from tests.components.checked_models import (
    BAD,
    GOOD,
    Ngrams,
    Words,
    example,
    failed,
    save,
    write_evaluation,
)
from tests.components.evaluated import write_ngram_model

pytestmark = pytest.mark.slow

GOLDEN = [("positive", f"{word} thing") for word in GOOD]
GOLDEN += [("negative", f"{word} thing") for word in BAD]
REVIEWS = [(f"a {word} phone, number {n}", int(word in GOOD)) for n in range(20) for word in GOOD]
REVIEWS += [(f"{word} and {n} problems", 0) for n in range(20) for word in BAD]
# The model predicts the wrong label for this review.
REVIEWS.append(("not good", 0))


class Workspace:
    """A folder with the inputs of the component."""

    def __init__(self, folder):
        self.folder = folder
        self.saved = folder / "model" / "Format-Serving"
        split = folder / "examples" / "Split-test"
        split.mkdir(parents=True)
        options = tf.io.TFRecordOptions(compression_type="GZIP")
        for part in (0, 1):
            with tf.io.TFRecordWriter(str(split / f"part-{part}.gz"), options) as writer:
                for text, label in REVIEWS[part::2]:
                    writer.write(example(text, label))
        write_evaluation(folder / "evaluation", 1 - 1 / len(REVIEWS), len(REVIEWS))

    def save(self, **arguments):
        save(Words(self.folder / "assets", **arguments), self.saved)

    def check(self, **settings):
        """Run the component; return its check.json and whether TFX's Pusher would push."""
        kinds = ("Model", "Examples", "ModelEvaluation", "InfraBlessing")
        artifacts = [getattr(standard_artifacts, kind)() for kind in kinds]
        names = ("model", "examples", "evaluation", "blessing")
        for artifact, name in zip(artifacts, names, strict=True):
            artifact.uri = str(self.folder / name)
        model, examples, evaluation, blessing = artifacts
        examples.split_names = artifact_utils.encode_split_names(["train", "test"])
        Executor().Do(
            {"model": [model], "examples": [examples], "evaluation": [evaluation]},
            {"blessing": [blessing]},
            {"settings": Serving(**settings).model_dump_json(), "golden": encode(GOLDEN)},
        )
        found = json.loads((self.folder / "blessing" / "check.json").read_text())
        assert blessing.get_int_custom_property("blessed") == int(found["passed"])
        assert blessing.get_string_custom_property("cause") == found["cause"]
        assert bool(found["cause"]) != found["passed"]
        assert "\n" not in found["cause"]
        return found


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def test_a_good_model_passes_with_all_results(workspace):
    workspace.save()
    found = workspace.check()
    assert found["passed"], found
    values = {result["name"]: result["value"] for result in found["results"]}
    assert values.keys() == {
        *("process", "signatures", "load_seconds", "memory_mb", "p99_ms", "reviews_per_second"),
        *("largest_difference", "evaluation_difference", "accuracy_difference", "golden"),
    }
    assert values["signatures"] == "predict_text, serving_default, transform_features"
    assert values["golden"] == 1.0
    assert all(values[name] > 0 for name in ("load_seconds", "memory_mb", "p99_ms"))
    assert values["accuracy_difference"] == 0
    keys = {"name", "value", "threshold", "unit", "passed"}
    assert all(set(result) == keys for result in found["results"])


def test_a_slow_model_is_refused(workspace):
    workspace.save(slow=True)
    found = workspace.check(max_p99_ms=250.0)
    assert failed(found) == ["p99_ms"]
    assert re.fullmatch(
        r"the p99 latency of single requests is [\d,]+ ms, serving.max_p99_ms allows 250",
        found["cause"],
    )
    assert found["golden_mistakes"] == []


def test_a_model_with_the_wrong_vocabulary_is_refused(workspace):
    # The lines of its vocabulary are in another order than in the training.
    workspace.save(words=(*BAD, *GOOD))
    found = workspace.check()
    assert failed(found) == ["accuracy_difference", "golden"]
    assert re.fullmatch(
        r"the accuracy on the 121 test reviews is 0\.0\d+, the evaluation reports 0\.9917 "
        r"\(and 1 more\)",
        found["cause"],
    )
    mistake = found["golden_mistakes"][0]
    assert (mistake["text"], mistake["label"]) == ("great thing", "positive")
    assert mistake["probability"] < 0.1


def test_a_model_that_answers_otherwise_than_in_its_evaluation_is_refused(workspace):
    workspace.save()
    examples = [example(text, label) for text, label in REVIEWS]
    # sigmoid(3) and sigmoid(-3) of the model, but for one review.
    right = [0.9526 if text.split()[1] in GOOD else 0.0474 for text, _ in REVIEWS[:-1]]
    stored = dict(zip(map(files.digest, examples[:-1]), right, strict=True))
    files.write_predictions(str(workspace.folder / "evaluation"), stored, [])
    assert workspace.check()["passed"]
    stored[files.digest(examples[0])] = 1 - right[0]
    files.write_predictions(str(workspace.folder / "evaluation"), stored, [])
    found = workspace.check()
    assert failed(found) == ["evaluation_difference"]
    assert found["cause"].startswith("serving_default returned the probability 0.")
    assert "the evaluation has 0." in found["cause"]


def test_a_model_that_answers_texts_and_examples_differently_is_refused(workspace):
    workspace.save(halves_text=True)
    found = workspace.check()
    assert "largest_difference" in failed(found)
    assert found["cause"].startswith("predict_text returned the probability 0.")
    assert "for a test review, and serving_default returned 0." in found["cause"]


ALL_SIGNATURES = ("serving_default", "predict_text", "transform_features", "predict_ngrams")


def test_the_signature_for_ngrams_is_called_and_must_agree(workspace):
    save(Ngrams(workspace.folder / "assets"), workspace.saved, names=ALL_SIGNATURES)
    found = workspace.check()
    assert failed(found) == ["largest_difference"]
    assert found["cause"].endswith("and predict_ngrams returned 0.2500 for the same review")


def test_a_signature_for_ngrams_that_fails_is_named(workspace):
    save(Ngrams(workspace.folder / "assets", fails=True), workspace.saved, names=ALL_SIGNATURES)
    found = workspace.check()
    assert failed(found) == ["process"]
    assert found["cause"].startswith("the first answer of predict_ngrams: ")
    assert "InvalidArgumentError" in found["cause"]


def test_the_probe_calls_all_signatures_of_the_default_model(tmp_path):
    write_ngram_model(tmp_path / "model", 1)
    examples = [example(text, label) for text, label in REVIEWS]
    saved = str(tmp_path / "model" / "Format-Serving")
    answer, failure = probing.run_probe(saved, examples, ["good"], 600)
    assert (failure, answer.finished) == ("", True)
    assert answer.signatures == sorted(ALL_SIGNATURES)
    assert len(answer.by_ngrams) == len(REVIEWS)
    assert answer.by_ngrams == pytest.approx(answer.by_text, abs=1e-6)
    assert answer.by_ngrams == pytest.approx(answer.by_example, abs=1e-6)


def test_every_measurement_has_its_threshold(workspace):
    workspace.save()
    found = workspace.check(
        max_load_seconds=1e-3, max_memory_mb=1, max_p99_ms=1e-6, min_reviews_per_second=1e9
    )
    assert failed(found) == ["load_seconds", "memory_mb", "p99_ms", "reviews_per_second"]
    assert found["cause"].endswith(" s, serving.max_load_seconds allows 0.001 (and 3 more)")


def test_a_model_that_fails_is_refused_with_its_last_error_line(workspace):
    workspace.save(fails=True)
    found = workspace.check()
    assert failed(found) == ["process"]
    assert found["cause"].startswith(
        "the first answer of predict_text: the process ended with exit code 1: "
    )
    assert "InvalidArgumentError" in found["cause"]
    assert len(found["cause"]) < 400


def test_a_model_with_damaged_weights_is_refused(workspace):
    workspace.save()
    [weights] = (workspace.saved / "variables").glob("variables.data-*")
    weights.write_bytes(weights.read_bytes()[:7])
    found = workspace.check()
    assert failed(found) == ["process"]
    assert found["cause"].startswith("loading the model: the process ended with exit code 1: ")
    assert "Error" in found["cause"]


def test_a_model_without_a_signature_is_refused(workspace):
    save(Words(workspace.folder / "assets"), workspace.saved, names=("serving_default",))
    found = workspace.check()
    assert failed(found) == ["signatures"]
    assert found["cause"] == "the model has no signature predict_text and no transform_features"


@pytest.mark.parametrize(
    ("stub", "timeout", "failure"),
    [
        (
            "abort",
            60,
            "the first answer of predict_text: the process was ended by SIGABRT: "
            "F tensorflow/core: Check failed: size >= 0",
        ),
        (
            "raise",
            60,
            "the first answer of predict_text: the process ended with exit code 1: "
            "ValueError: no weights",
        ),
        (
            "hang",
            0.5,
            "the first answer of predict_text: the process took longer than 0.5 s "
            "(serving.timeout_seconds)",
        ),
        ("nothing", 60, "the first answer of predict_text: the process wrote no answer"),
        (
            "garbage",
            60,
            "the first answer of predict_text: the answer of the process is not readable: "
            "Expecting value: line 1 column 1 (char 0)",
        ),
    ],
)
def test_every_end_of_the_process_has_a_reason(monkeypatch, stub, timeout, failure):
    monkeypatch.setattr(probing, "_MODULE", "tests.components.stub_probe")
    monkeypatch.setenv("STUB", stub)
    answer, reason = probing.run_probe("model", [], [], timeout)
    assert answer == Answer()
    # On a busy machine, half a second may not be enough for the process to print its stage.
    early = failure.replace("the first answer of predict_text", "starting the process")
    assert reason in (failure, early)


def test_an_answer_of_another_form_is_a_failure(monkeypatch):
    monkeypatch.setattr(probing, "_MODULE", "tests.components.stub_probe")
    monkeypatch.setenv("STUB", "other keys")
    _, reason = probing.run_probe("model", [], [], 60)
    assert "the answer of the process is not readable" in reason


def test_a_sample_is_the_same_every_time_and_not_the_beginning(tmp_path):
    Workspace(tmp_path)
    folder = str(tmp_path / "examples" / "Split-test")
    sample = read_sample(folder, 40)
    assert sample == read_sample(folder, 40)
    assert (len(sample.examples), sample.total, sample.is_whole) == (40, len(REVIEWS), False)
    # In the files the positive reviews come first.
    assert 0 < sum(sample.labels) < 40
    assert len(set(sample.examples)) == 40
    whole = read_sample(folder, 1000)
    assert whole.is_whole
    assert set(sample.examples) < set(whole.examples)
