"""ServingCheck: a model in a new process, the checks that block its push, and their messages."""

import json
import math
import re

import pytest
import tensorflow as tf
from tfx.types import artifact_utils, standard_artifacts

from components.serving_check import probing, results
from components.serving_check.executor import Executor
from components.serving_check.golden import encode
from components.serving_check.sample import Sample, read_sample
from components.serving_check.settings import Serving
from serving.probe import SIGNATURES, Answer, percentile
from tests.components.checked_models import BAD, GOOD, Words, example, save, write_evaluation

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


def failed(found):
    return [result["name"] for result in found["results"] if not result["passed"]]


def test_a_good_model_passes_with_all_results(workspace):
    workspace.save()
    found = workspace.check()
    assert found["passed"], found
    values = {result["name"]: result["value"] for result in found["results"]}
    assert values.keys() == {
        *("process", "signatures", "load_seconds", "memory_mb", "p99_ms", "reviews_per_second"),
        *("largest_difference", "accuracy_difference", "golden"),
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


def test_a_model_that_answers_texts_and_examples_differently_is_refused(workspace):
    workspace.save(halves_text=True)
    found = workspace.check()
    assert "largest_difference" in failed(found)
    assert found["cause"].startswith("predict_text returned the probability 0.")
    assert "for a test review, and serving_default returned 0." in found["cause"]


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


SAMPLE = Sample([b""] * 4, [1, 0, 1, 0], 4)
RIGHT = Answer(
    signatures=sorted(SIGNATURES),
    load_seconds=1.0,
    p99_ms=5.0,
    reviews_per_second=1000.0,
    memory_mb=500.0,
    by_example=[0.9, 0.2, 0.7, 0.4],
    by_text=[0.9, 0.2, 0.7, 0.4],
    by_single=[0.9, 0.2],
    golden=[0.9, 0.1],
    transformed=4,
    finished=True,
)
EVALUATION = {"binary_accuracy": 1.0, "example_count": 4}
TWO_GOLDEN = [("positive", "good"), ("negative", "bad")]


def judged(sample=SAMPLE, evaluation=EVALUATION, **changes):
    answer = Answer(**{**vars(RIGHT), **changes})
    return results.check(answer, "", Serving(), sample, evaluation, TWO_GOLDEN)


@pytest.mark.parametrize(
    ("changes", "name", "cause"),
    [
        ({}, None, ""),
        (
            {"load_seconds": 60.4},
            "load_seconds",
            "loading took 60.4 s, serving.max_load_seconds allows 60",
        ),
        (
            {"memory_mb": 5000.0},
            "memory_mb",
            "the process used 5,000 MiB, serving.max_memory_mb allows 4096",
        ),
        (
            {"reviews_per_second": 2.5},
            "reviews_per_second",
            "the throughput in batches of 64 is 2.5 reviews per second, "
            "serving.min_reviews_per_second requires 10",
        ),
        (
            {"by_single": [0.9, 0.3]},
            "largest_difference",
            "predict_text returned the probability 0.2000 for a test review, and predict_text for "
            "a single text returned 0.3000 for the same review",
        ),
        (
            {"by_text": [math.nan, 0.2, 0.7, 0.4]},
            "largest_difference",
            "predict_text returned the probability nan for a test review, and serving_default "
            "returned 0.9000 for the same review",
        ),
        (
            {"by_text": [0.9, 0.2]},
            "predictions",
            "serving_default and predict_text returned 4 and 2 predictions for 4 reviews, and "
            "transform_features returned the features of 4 of 4",
        ),
        (
            {"golden": [0.4, 0.9]},
            "golden",
            "0 of 2 golden sentences are right, serving.min_golden requires 0.6; check the model, "
            "or set serving.golden to sentences of its data",
        ),
    ],
)
def test_each_cause_is_one_line_with_value_and_setting(changes, name, cause):
    found = judged(**changes)
    assert (found["passed"], found["cause"]) == (name is None, cause)
    assert failed(found) == ([name] if name else [])


def test_a_value_at_the_threshold_passes():
    assert judged(load_seconds=60.0, memory_mb=4096.0, p99_ms=1000.0, reviews_per_second=10.0)[
        "passed"
    ]


def test_the_accuracy_equals_that_of_the_evaluation_except_for_rounding():
    wrong = [0.9, 0.6, 0.7, 0.4]
    assert failed(judged(by_example=wrong, by_text=wrong, by_single=[])) == ["accuracy_difference"]
    rounded = [0.9, 0.50001, 0.7, 0.4]
    assert judged(by_example=rounded, by_text=rounded, by_single=[])["passed"]


@pytest.mark.parametrize(("accuracy", "passed"), [(0.9, True), (0.75, True), (0.1, False)])
def test_the_accuracy_of_a_sample_is_near_that_of_the_evaluation(accuracy, passed):
    sample = Sample([b""] * 100, [1, 0] * 50, 10_000)
    right = [0.9, 0.1] * 45 + [0.1, 0.9] * 5  # 90% are right
    evaluation = {"binary_accuracy": accuracy, "example_count": 10_000}
    found = judged(
        sample, evaluation, by_example=right, by_text=right, by_single=[], transformed=64
    )
    assert found["passed"] == passed


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


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 1), (2, 2), (99, 99), (100, 99), (200, 198), (1000, 990)]
)
def test_the_percentile_is_that_of_the_nearest_rank(count, expected):
    assert percentile(range(count, 0, -1), 0.99) == expected
