"""ServingCheck: a model behind the product's server, the checks that block its push, and causes."""

import json
import math
import re

import psutil
import pytest
import tensorflow as tf
from tfx.types import artifact_utils, standard_artifacts

from components.evaluator import files
from components.examples import Sample, read_sample
from components.serving_check import candidate, results
from components.serving_check.candidate import Answers, try_candidate
from components.serving_check.component import ServingCheck
from components.serving_check.settings import Thresholds
from tests.components.checked_models import BAD, GOOD, Words, save, write_evaluation
from tests.examples import example, write

GOLDEN = [f"positive\t{word} thing" for word in GOOD] + [f"negative\t{word} thing" for word in BAD]
REVIEWS = [(f"a {word} phone, number {n}", int(word in GOOD)) for n in range(20) for word in GOOD]
REVIEWS += [(f"{word} and {n} problems", 0) for n in range(20) for word in BAD]


def failed(found):
    """Return the names of the results that did not pass."""
    return [result["name"] for result in found["results"] if not result["passed"]]


class Workspace:
    """A folder with the inputs of the component; the evaluation is that of a right model."""

    def __init__(self, folder):
        self.folder = folder
        self.saved = folder / "model" / "Format-Serving"
        split = folder / "examples" / "Split-test"
        split.mkdir(parents=True)
        examples = [example(text=text, label=label) for text, label in REVIEWS]
        for part in (0, 1):
            write(split / f"part-{part}.gz", examples[part::2])
        write_evaluation(folder / "evaluation", 1.0, len(REVIEWS))
        # sigmoid(3) and sigmoid(-3) of the model.
        right = [0.9526 if label else 0.0474 for _, label in REVIEWS]
        stored = dict(zip(map(files.digest, examples), right, strict=True))
        files.write_predictions(str(folder / "evaluation"), stored, [])

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
        golden = self.folder / "golden.txt"
        golden.write_text("\n".join(GOLDEN))
        ServingCheck.EXECUTOR_SPEC.executor_class().Do(
            {"model": [model], "examples": [examples], "evaluation": [evaluation]},
            {"blessing": [blessing]},
            Thresholds(**settings, golden=str(golden)).parameters(),
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


@pytest.mark.slow
def test_a_good_model_passes_with_all_results(workspace):
    workspace.save()
    found = workspace.check()
    assert found["passed"], found
    values = {result["name"]: result["value"] for result in found["results"]}
    assert values.keys() == {
        *("process", "signatures", "load_seconds", "memory_mb", "p99_ms", "reviews_per_second"),
        *("largest_difference", "evaluation_difference", "golden_negative", "golden_positive"),
    }
    assert values["signatures"] == "predict_text, serving_default, transform_features"
    assert values["golden_negative"] == values["golden_positive"] == 1.0
    assert all(values[name] > 0 for name in ("load_seconds", "memory_mb", "p99_ms"))
    assert values["evaluation_difference"] < 1e-3
    keys = {"name", "value", "threshold", "unit", "passed"}
    assert all(set(result) == keys for result in found["results"])


@pytest.mark.slow
def test_a_bad_model_is_refused_for_each_reason(workspace):
    # The lines of its vocabulary are in another order than in the training.
    workspace.save(words=(*BAD, *GOOD), halves_text=True)
    found = workspace.check(max_p99_ms=1e-6)
    differences = ["largest_difference", "evaluation_difference"]
    assert failed(found) == ["p99_ms", *differences, "golden_positive"]
    assert re.fullmatch(
        r"the p99 latency of single requests is \S+ ms, serving_check.max_p99_ms allows 1e-06 "
        r"\(and 3 more\)",
        found["cause"],
    )
    mistake = found["golden_mistakes"][0]
    assert (mistake["text"], mistake["label"]) == ("great thing", "positive")
    assert mistake["probability"] < 0.1


@pytest.mark.slow
def test_a_model_that_fails_is_refused_with_its_error(workspace):
    workspace.save(fails=True)
    found = workspace.check()
    assert failed(found) == ["process"]
    assert found["cause"].startswith("the model fails in ")
    assert "InvalidArgumentError" in found["cause"]
    assert len(found["cause"]) < 400


@pytest.mark.slow
def test_a_model_without_a_signature_is_refused(workspace):
    names = ("predict_text", "serving_default")
    save(Words(workspace.folder / "assets"), workspace.saved, names=names)
    found = workspace.check()
    assert failed(found) == ["signatures"]
    assert found["cause"] == "the model has no signature transform_features"


@pytest.mark.parametrize(
    ("stub", "seconds", "failure"),
    [
        ("abort", 60, "the server ended with SIGABRT: F tensorflow/core: Check failed: size >= 0"),
        ("raise", 60, "the server ended with exit code 1: ValueError: no weights"),
        ("hang", 0.5, "the answers took longer than 0.5 s"),
        ("nothing", 60, "the server ended with exit code 0: no message"),
        ("garbage", 60, "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("list", 60, "TypeError: list indices must be integers or slices, not str"),
        ("refuse", 60, "HTTP 500, internal error: KeyError"),
        ("stop", 60, "the server ended with exit code 3: no message"),
    ],
)
def test_every_end_of_the_server_has_a_reason(tmp_path, monkeypatch, stub, seconds, failure):
    (tmp_path / "model").mkdir()
    monkeypatch.setattr(candidate, "_SERVER", "tests.components.stub_server")
    monkeypatch.setenv("STUB", stub)
    _, reason = try_candidate(str(tmp_path / "model"), [], [], seconds)
    assert reason == failure
    assert not any("stub_server" in str(child.cmdline()) for child in psutil.Process().children())


SAMPLE = Sample([b""] * 4, 4)
RIGHT = Answers(
    signatures=sorted(candidate.SIGNATURES),
    load_seconds=1.0,
    p99_ms=5.0,
    reviews_per_second=1000.0,
    memory_mb=500.0,
    by_example=[0.9, 0.2, 0.7, 0.4],
    by_text=[0.9, 0.2, 0.7, 0.4],
    by_single=[0.9, 0.2],
    golden=[0.9, 0.1],
)


def judged(sample=SAMPLE, count=4, predictions=None, **changes):
    answers = Answers(**{**vars(RIGHT), **changes})
    evaluated = results.Evaluated(count, {0: 0.9} if predictions is None else predictions)
    golden = [("positive", "good"), ("negative", "bad")]
    return results.check(answers, "", Thresholds(), sample, evaluated, golden)


@pytest.mark.parametrize(
    ("changes", "name", "cause"),
    [
        ({}, None, ""),
        ({"memory_mb": 4096.0, "p99_ms": 1000.0}, None, ""),
        (
            {"p99_ms": 1000.1},
            "p99_ms",
            "the p99 latency of single requests is 1,000 ms, serving_check.max_p99_ms allows 1000",
        ),
        (
            {"memory_mb": 5000.0},
            "memory_mb",
            "the server used 5,000 MiB, serving_check.max_memory_mb allows 4096",
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
            {"golden": [0.9, 0.9]},
            "golden_negative",
            "0 of 1 negative golden sentences are right, serving_check.min_golden requires 0.5; "
            "check the model, or set serving_check.golden to sentences of its data",
        ),
        ({"count": 5}, "examples", "the test split has 4 reviews, the evaluation counted 5"),
    ],
)
def test_each_cause_is_one_line_with_value_and_setting(changes, name, cause):
    found = judged(**changes)
    assert (found["passed"], found["cause"]) == (name is None, cause)
    assert failed(found) == ([name] if name else [])


def test_golden_sentences_are_judged_per_class_and_0_is_no_threshold():
    golden = [("positive", "good")] * 8 + [("negative", "bad")] * 2
    answers = Answers(**{**vars(RIGHT), "golden": [0.9] * 10})
    given = (SAMPLE, results.Evaluated(4, {0: 0.9}), golden)
    found = results.check(answers, "", Thresholds(), *given)
    assert failed(found) == ["golden_negative"]
    answers.golden[-1] = 0.1
    assert results.check(answers, "", Thresholds(), *given)["passed"]
    found = results.check(answers, "", Thresholds(min_golden=0.0), *given)
    assert [one["threshold"] for one in found["results"][-2:]] == [None, None]
    assert found["passed"]


@pytest.mark.parametrize(
    ("predictions", "passed", "value"),
    [
        ({0: 0.9, 2: 0.7005}, True, 0.0005),
        ({0: 0.9005, 3: 0.42, 2: 0.7}, False, 0.02),
        ({1: math.nan}, False, math.nan),
        ({}, False, None),  # the Examples have changed since the evaluation
    ],
)
def test_each_answer_is_that_of_the_evaluation(predictions, passed, value):
    found = judged(predictions=predictions)
    [result] = [one for one in found["results"] if one["name"] == "evaluation_difference"]
    if predictions:
        assert result["value"] == pytest.approx(value, nan_ok=True)
    else:
        assert result["value"] == "no predictions"
    assert (result["passed"], found["passed"]) == (passed, passed)


def label_of(serialized):
    return tf.train.Example.FromString(serialized).features.feature["label"].int64_list.value[0]


def test_a_sample_is_the_same_every_time_and_not_the_beginning(tmp_path):
    Workspace(tmp_path)
    folder = str(tmp_path / "examples" / "Split-test")
    sample = read_sample(folder, 40)
    assert sample == read_sample(folder, 40)
    assert (len(sample.examples), sample.total) == (40, len(REVIEWS))
    # In the files the positive reviews come first.
    assert 0 < sum(map(label_of, sample.examples)) < 40
    assert len(set(sample.examples)) == 40
    whole = read_sample(folder, 1000)
    assert len(whole.examples) == len(REVIEWS)
    assert set(sample.examples) < set(whole.examples)
