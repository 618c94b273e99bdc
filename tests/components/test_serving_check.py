"""ServingCheck: a model behind the product's server, the checks that block its push, and causes."""

import base64
import json
import math
import re

import psutil
import pytest
import tensorflow as tf
from tfx.types import artifact_utils, standard_artifacts

from components.evaluator import files
from components.serving_check import candidate, component
from components.serving_check.candidate import Answers, try_candidate
from components.serving_check.component import ServingCheck, check_answers
from components.serving_check.golden import Sentence, read_golden
from components.serving_check.thresholds import Thresholds
from core.errors import InputError
from examples.tfrecords import read_sample
from preprocessing.labels import SENTIMENT, Labels, write_labels
from sample_data.generate import OUTPUT as SAMPLE
from serving.rest.limits import Limits
from tests.examples import example, write

GOOD, BAD = ("great", "good", "love"), ("awful", "bad", "hate")
GOLDEN = [f"positive\t{word} thing" for word in GOOD] + [f"negative\t{word} thing" for word in BAD]
REVIEWS = [(f"a {word} phone, number {n}", int(word in GOOD)) for n in range(20) for word in GOOD]
REVIEWS += [(f"{word} and {n} problems", 0) for n in range(20) for word in BAD]


class Words(tf.Module):
    """A model whose probability depends on the good and the bad words in the text."""

    def __init__(self, *, weight=3.0, fails=False, halves_text=False):
        super().__init__()
        self._weight = tf.Variable(weight)
        self._fails, self._halves_text = fails, halves_text

    def _predict(self, texts):
        if self._fails:
            # The assertion fails in the first call, not while the model is saved.
            with tf.control_dependencies([tf.debugging.Assert(False, ["the table is empty"])]):
                texts = tf.identity(texts)
        good, bad = (
            tf.cast(tf.strings.regex_full_match(texts, f".*({'|'.join(words)}).*"), tf.float32)
            for words in (GOOD, BAD)
        )
        probability = tf.sigmoid(self._weight * (good - bad))
        return {"probability": probability, "label": tf.cast(probability > 0.5, tf.int64)}

    def _texts(self, examples):
        spec = {"text": tf.io.FixedLenFeature([], tf.string)}
        return tf.io.parse_example(examples, spec)["text"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serving_default(self, examples):
        return self._predict(self._texts(examples))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def predict_text(self, texts):
        answer = self._predict(texts)
        if self._halves_text:
            answer["probability"] /= 2
        return answer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_features(self, examples):
        return {"words": tf.strings.split(self._texts(examples)).to_tensor()}


def failed(found):
    """Return the names of the results that did not pass."""
    return [result["name"] for result in found["results"] if not result["passed"]]


class Workspace:
    """A folder with the inputs of the component; the evaluation is that of a right model."""

    def __init__(self, folder):
        self.folder = folder
        split = folder / "examples" / "Split-test"
        split.mkdir(parents=True)
        write_labels(str(folder / "examples"), SENTIMENT)
        examples = [example(text=text, label=label) for text, label in REVIEWS]
        for part in (0, 1):
            write(split / f"part-{part}.gz", examples[part::2])
        # sigmoid(3) and sigmoid(-3) of the model.
        right = [0.9526 if label else 0.0474 for _, label in REVIEWS]
        stored = dict(zip(map(files.digest, examples), right, strict=True))
        files.write_predictions(str(folder / "evaluation"), stored, [], {})

    def save(self, **arguments):
        model = Words(**arguments)
        names = ("serving_default", "predict_text", "transform_features")
        signatures = {name: getattr(model, name) for name in names}
        tf.saved_model.save(model, str(self.folder / "model" / "Format-Serving"), signatures)

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
            Thresholds(**{"golden": str(golden), **settings}).parameters(),
        )
        found = json.loads((self.folder / "blessing" / "check.json").read_text())
        assert blessing.get_int_custom_property("blessed") == int(found["passed"])
        assert blessing.get_string_custom_property("cause") == found["cause"]
        assert blessing.get_string_custom_property("not_checked") == found["not_checked"]
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
        *("process", "load_seconds", "memory_mb", "p99_ms", "reviews_per_second"),
        *("largest_difference", "single_difference", "evaluation_difference"),
        *("golden_negative", "golden_positive"),
    }
    assert values["golden_negative"] == values["golden_positive"] == 1.0
    assert values["evaluation_difference"] < 1e-3
    keys = {"name", "value", "threshold", "unit", "passed", "cause"}
    assert all(set(result) == keys for result in found["results"])


@pytest.mark.slow
def test_a_text_that_no_server_accepts_is_not_the_fault_of_the_model(workspace):
    large = example(text="good " + "x" * 4_000_000, label=1)
    write(workspace.folder / "examples" / "Split-test" / "part-2.gz", [large])
    workspace.save()
    found = workspace.check()
    assert found["passed"], found["cause"]
    assert found["not_checked"] == (
        "1 of 121 test reviews were not sent, because the server accepts requests of at most "
        "4,194,304 bytes"
    )


def test_a_bad_model_is_refused_for_each_reason(workspace):
    workspace.save(weight=-3.0, halves_text=True)
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
    assert found["cause"].startswith("the model cannot be served: ")
    assert "the table is empty" in found["cause"]
    assert len(found["cause"]) < 400


@pytest.mark.slow
def test_a_damaged_model_is_an_error_and_no_refusal(workspace):
    workspace.save()
    [weights] = workspace.folder.glob("model/*/variables/*.data-*")
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"Serving is damaged \(.*\); run once with --set cache="):
        workspace.check()


@pytest.mark.parametrize(
    ("stub", "seconds", "failure"),
    [
        ("abort", 60, "the server ended with SIGABRT: F tensorflow/core: Check failed: size >= 0"),
        ("raise", 60, "the server ended with exit code 1: ValueError: no weights"),
        ("hang", 0.5, "the answers took longer than 0.5 s"),
        ("list", 60, "TypeError: list indices must be integers or slices, not str"),
        ("refuse", 60, "HTTP 500, internal error: KeyError"),
        ("lacks", 60, "the model has no signature serving_default and no transform_features"),
    ],
)
def test_every_end_of_the_server_has_a_reason(tmp_path, monkeypatch, stub, seconds, failure):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").touch()
    monkeypatch.setattr(candidate, "_SERVER", "tests.components.stub_server")
    monkeypatch.setenv("STUB", stub)
    assert try_candidate(str(tmp_path / "model"), [], [], seconds).failure == failure


def test_a_candidate_without_files_is_an_error_and_no_refusal(tmp_path):
    with pytest.raises(InputError, match="gone is missing, or has no files"):
        try_candidate(str(tmp_path / "gone"), [], [])
    assert not any("stub_server" in str(child.cmdline()) for child in psutil.Process().children())


RIGHT = Answers(
    measured={"load_seconds": 1.0, "p99_ms": 1000.0, "memory_mb": 4096.0},
    by_example=[0.9, 0.2, 0.7, 0.4],
    by_text=[0.9, 0.2, 0.7, 0.4],
    by_single=[0.9, 0.2],
    golden=[0.9] * 8 + [0.1] * 2,
)
GOLDEN_SENTENCES = [Sentence("positive", "good")] * 8 + [Sentence("negative", "bad")] * 2


@pytest.mark.parametrize(
    ("changes", "name", "cause"),
    [
        ({}, None, ""),
        (
            {"measured": {"p99_ms": 1000.1}},
            "p99_ms",
            "the p99 latency of single requests is 1,000.1 ms, serving_check.max_p99_ms allows "
            "1000",
        ),
        (
            {"by_single": [0.9, 0.3]},
            "single_difference",
            "predict_text returned the probability 0.2000 for a test review, and predict_text for "
            "a single text 0.3000 for the same review",
        ),
        (
            {"by_text": [0.9, 0.2, math.nan, 0.4]},
            "largest_difference",
            "predict_text returned the probability nan for a test review, and serving_default "
            "0.7000 for the same review",
        ),
        (
            {"golden": [0.9] * 10},
            "golden_negative",
            "0 of 2 negative golden sentences are right, serving_check.min_golden requires 0.5; "
            "check the model, or set serving_check.golden to sentences of its data",
        ),
        # No model can miss 0.
        ({"golden": [0.9] * 10, "min_golden": 0.0}, None, ""),
    ],
)
def test_each_cause_is_one_line_with_value_and_setting(changes, name, cause):
    thresholds = Thresholds(min_golden=changes.pop("min_golden", 0.5))
    answers = Answers(**{**vars(RIGHT), **changes})
    checked = check_answers(answers, thresholds, {0: 0.9, 2: 0.7005}, GOLDEN_SENTENCES, SENTIMENT)
    found = checked.to_json()
    assert (found["passed"], found["cause"]) == (name is None, cause)
    assert failed(found) == ([name] if name else [])


@pytest.mark.parametrize("size", [10, 60_000, 3_000_000])
def test_a_request_with_long_reviews_fits_into_the_limit_of_the_server(size):
    reviews = [b"%03d" % number + b"x" * size for number in range(100 if size < 10**6 else 3)]
    batches = list(candidate._batches(reviews))
    assert [review for batch in batches for review in batch] == reviews
    assert all(len(batch) <= 64 for batch in batches)
    for batch in batches:
        body = json.dumps([{"b64": base64.b64encode(review).decode()} for review in batch])
        # A single review of more than 3 MB cannot be served at all.
        assert len(body) < Limits().body_bytes or len(batch) == 1


ENGLISH = [line.split(" ", 1)[1] for line in SAMPLE.read_text("utf-8").splitlines()[:300]]
GERMAN = [
    f"{opinion}, {number} {thing}. {end} Made in China, super Sound"
    for opinion in ("Tolles Produkt", "Sehr schlecht verarbeitet")
    for thing in ("Kopfhörer", "Kameras", "Bücher")
    for end in ("Gerne wieder!", "Leider nach zwei Tagen kaputt.")
    for number in range(20)
]
QUESTIONS = [
    f"{question} {noun}, and how do I do it this week {number}?"
    for question in ("When will I get my new", "Why was I charged for the", "Is it safe to use a")
    for noun in ("card", "transfer", "account", "top up", "pin code")
    for number in range(20)
]


class SwappedLabels(Workspace):
    """A model that has learned swapped labels: its evaluation is good, its golden answers wrong."""

    def __init__(self, folder, monkeypatch, reviews):
        super().__init__(folder)
        split = folder / "examples" / "Split-train"
        split.mkdir()
        write(split / "part.gz", [example(text=text, label=1) for text in reviews])
        monkeypatch.setattr(component, "try_candidate", self._answer)

    def _answer(self, model, sample, golden):
        stored = files.stored_predictions(str(self.folder / "evaluation"), sample)
        answers = [stored[number] for number in range(len(sample))]
        labels = [label for label, text in read_golden(None) if text in golden]
        # Sentences that a user chose are all answered with 0.9.
        wrong = [0.1 if label == "positive" else 0.9 for label in labels] or [0.9] * len(golden)
        return Answers("", {}, answers, answers, answers[:1], wrong)


def test_swapped_labels_of_english_reviews_are_refused(tmp_path, monkeypatch):
    found = SwappedLabels(tmp_path, monkeypatch, ENGLISH).check(golden=None)
    assert failed(found) == ["golden_negative", "golden_positive"]
    assert "0 of 20 negative golden sentences are right" in found["cause"]
    assert len(found["golden_mistakes"]) == 40
    assert found["not_checked"] == ""


@pytest.mark.parametrize(
    ("reviews", "percent"),
    [(GERMAN, 2), (QUESTIONS, 12), (["好的手机"] * 50, 0), (["\x00"], 0)],
    ids=["german", "bank", "chinese", "no words"],
)
def test_the_packaged_sentences_apply_only_to_reviews_with_their_words(
    tmp_path, monkeypatch, reviews, percent
):
    found = SwappedLabels(tmp_path, monkeypatch, reviews).check(golden=None)
    assert found["passed"], found
    # All other results are there.
    assert found["results"][-1]["name"] == "evaluation_difference"
    assert found["golden_mistakes"] == []
    assert found["not_checked"].startswith(
        "the package's English golden sentences were not applied: "
        f"{percent}% of their words occur in the train reviews, 65% are required; "
    )
    assert found["not_checked"].endswith(
        "swapped labels were not; set serving_check.golden to sentences of your data"
    )


def test_the_sentences_of_a_user_always_apply(tmp_path, monkeypatch):
    found = SwappedLabels(tmp_path, monkeypatch, GERMAN).check()
    assert failed(found) == ["golden_negative"]
    assert found["not_checked"] == ""


def test_a_sample_is_the_same_every_time_and_not_the_beginning(tmp_path):
    Workspace(tmp_path)
    folder = str(tmp_path / "examples" / "Split-test")
    sample = read_sample(folder, 40)
    assert sample == read_sample(folder, 1000)[:40]
    # In the files the positive reviews come first.
    features = [tf.train.Example.FromString(one).features.feature for one in sample]
    assert 0 < sum(feature["label"].int64_list.value[0] for feature in features) < 40


STARS = Labels(("1", "2", "3"), is_ordered=True)


def test_answers_of_three_classes_are_compared_with_the_stored_classes():
    rows = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    answers = Answers(by_example=rows, by_text=rows, by_single=rows[:1], golden=rows)
    golden = [Sentence("1", "bad"), Sentence("2", "so so")]
    stored = {0: {0: 0.7, 1: 0.2}, 1: {2: 0.8, 0: 0.1}}
    found = check_answers(answers, Thresholds(), stored, golden, STARS).to_json()
    assert failed(found) == ["golden_2"]
    assert found["cause"].startswith(
        "0 of 1 golden sentences of class 2 are right, serving_check.min_golden requires 0.5; "
    )
    assert found["golden_mistakes"] == [
        {"text": "so so", "label": "2", "predicted": "3", "probability": 0.8}
    ]
    stored[1] = {2: 0.7, 0: 0.1}
    found = check_answers(answers, Thresholds(), stored, golden[:1], STARS).to_json()
    assert failed(found) == ["evaluation_difference"]
    assert found["cause"] == (
        "serving_default returned the probability 0.8000 for a test review, and the evaluation "
        "0.7000 for the same review"
    )


def test_messages_about_classes_that_rate_nothing_are_about_texts():
    labels = Labels(("refund", "positive", "delivery"))
    rows = [[0.7, 0.2, 0.1]] * 3
    answers = Answers(by_example=rows, by_text=rows, by_single=rows, golden=rows)
    answers.measured["reviews_per_second"] = 100.0
    golden = [Sentence("refund", "a"), Sentence("positive", "b"), Sentence("delivery", "c")]
    found = check_answers(answers, Thresholds(), {0: {0: 0.2}}, golden, labels).to_json()
    # In the order of the classes.
    assert failed(found) == ["evaluation_difference", "golden_positive", "golden_delivery"]
    difference, first, _ = [each["cause"] for each in found["results"] if not each["passed"]]
    assert difference.endswith(" for a test text, and the evaluation 0.2000 for the same text")
    assert first.startswith("0 of 1 golden sentences of class positive are right")
    measured = [(each["name"], each["unit"]) for each in found["results"]]
    assert ("texts_per_second", "texts/s") in measured


def check_classes(workspace, monkeypatch, labels, golden):
    """Run the component on a stub of the candidate; return its check.json."""
    answered = Answers(measured={}, golden=[[0.9, 0.05, 0.05]] * 9)
    monkeypatch.setattr(component, "try_candidate", lambda *given: answered)
    monkeypatch.setattr(component, "read_sample", lambda *given: [])
    monkeypatch.setattr(component, "stored_predictions", lambda *given: {})
    write_labels(str(workspace.folder / "examples"), labels)
    file = workspace.folder / "mine.txt"
    file.write_text("\n".join(golden))
    artifacts = {name: getattr(standard_artifacts, kind)() for name, kind in KINDS.items()}
    for name, artifact in artifacts.items():
        artifact.uri = str(workspace.folder / name)
    artifacts["examples"].split_names = '["train", "test"]'
    thresholds = Thresholds(golden=str(file) if golden else None)
    ServingCheck.test_call(**artifacts, **thresholds.parameters(()))
    return json.loads((workspace.folder / "blessing" / "check.json").read_text())


KINDS = {
    "model": "Model",
    "examples": "Examples",
    "evaluation": "ModelEvaluation",
    "blessing": "InfraBlessing",
}


def test_golden_sentences_of_other_classes_are_those_of_the_user(workspace, monkeypatch):
    found = check_classes(workspace, monkeypatch, STARS, [])
    assert found["passed"]
    assert found["not_checked"].startswith("no golden sentences were checked, because those of ")
    assert not [each for each in found["results"] if each["name"].startswith("golden")]
    found = check_classes(workspace, monkeypatch, STARS, ["1\tbad", "2\tso so"])
    assert failed(found) == ["golden_2"]
    assert found["not_checked"] == (
        "serving_check.golden has no sentence of 1 of 3 classes, which were not checked: 3"
    )
    problem = "^serving_check.golden: no class is called '4', known are 1, 2, 3$"
    with pytest.raises(InputError, match=problem):
        check_classes(workspace, monkeypatch, STARS, ["4\tgood"])
