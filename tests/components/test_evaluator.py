"""The Evaluator: predictions, slices, blessing, and what it stores for the check and the report."""

import json
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import json_format
from kfp.pipeline_spec.pipeline_spec_pb2 import ArtifactTypeSchema, RuntimeArtifact
from tfx.components.example_gen.utils import SPAN_PROPERTY_NAME
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.orchestration.kubeflow.v2 import compiler_utils
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils
from tfx.types import standard_artifacts

from components.evaluator import files, new_span, scores, scoring
from components.evaluator.component import EvaluatorExecutor
from components.evaluator.counts import Counts
from components.evaluator.files import BASELINE, CANDIDATE, WHOLE
from components.evaluator.metrics import ACCURACY, metrics
from components.evaluator.scoring import ScoreFiles
from components.evaluator.thresholds import Evaluation
from components.examples import split_files
from components.properties import BASELINE_PROPERTY
from core.errors import InputError
from examples.held_out import ORIGIN_FILE
from examples.tfrecords import read_sample
from preprocessing import normalise
from preprocessing.labels import SENTIMENT, Labels
from serving.drift import reference
from tests.components.evaluated import (
    ClassModel,
    NgramModel,
    OtherModel,
    write_examples,
    write_model,
)

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]

PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("evaluator")


@pytest.fixture(scope="module")
def examples(folder):
    return write_examples(folder / "examples", 240)


@pytest.fixture(scope="module")
def ngram_models(folder):
    models = NgramModel(), NgramModel(openings=())
    return [write_model(model, folder / f"model-{n}") for n, model in enumerate(models)]


@pytest.mark.parametrize("name", ["saved_model.pb", "variables.index", "variables.data-*"])
def test_a_damaged_candidate_is_named_and_not_the_baseline(tmp_path, examples, ngram_models, name):
    damaged = standard_artifacts.Model()
    damaged.uri = str(tmp_path / "model")
    shutil.copytree(ngram_models[0].uri, damaged.uri)
    [file] = Path(damaged.uri).rglob(name)
    file.write_bytes(file.read_bytes()[:-1] if "*" in name else b"")
    # `ServedBaseline` compares the candidate with the served model, and cannot read it either.
    unknown = standard_artifacts.Model()
    unknown.set_string_custom_property("problem", "paths.serving: the baseline is unknown")
    for baseline in ([], [unknown]):
        with pytest.raises(InputError, match=f"^{damaged.uri}/Format-Serving is damaged .* cache="):
            evaluate(tmp_path, examples, [damaged, *baseline])


@pytest.fixture(scope="module")
def other_model(folder):
    return write_model(OtherModel(), folder / "other")


def evaluate(
    folder, examples, models, *, min_accuracy=0.1, min_class_recall=0.0, beam_args=(), **settings
):
    """Run the component's executor; return its outputs, evaluation and blessing."""
    evaluation, blessing = standard_artifacts.ModelEvaluation(), standard_artifacts.ModelBlessing()
    evaluation.uri, blessing.uri = str(folder / "evaluation"), str(folder / "blessing")
    inputs = {"examples": [examples], "model": models[:1], "baseline_model": models[1:]}
    EvaluatorExecutor(BaseBeamExecutor.Context(beam_pipeline_args=list(beam_args))).Do(
        {name: artifacts for name, artifacts in inputs.items() if artifacts},
        {"evaluation": [evaluation], "blessing": [blessing]},
        {
            "settings": Evaluation(min_class_recall=min_class_recall, **settings).model_dump_json(),
            "min_accuracy": min_accuracy,
        },
    )
    return evaluation, blessing


def reviews_of(examples, model):
    """Return texts, labels, and the predictions of the signature for single Examples."""
    found = read_sample(f"{examples.uri}/Split-test", 1000)
    parsed = [tf.train.Example.FromString(one).features.feature for one in found]
    texts = [features["text"].bytes_list.value[0] for features in parsed]
    labels = np.array([features["label"].int64_list.value[0] for features in parsed])
    loaded = tf.saved_model.load(f"{model.uri}/Format-Serving")
    outputs = (
        loaded.signatures["serving_default"](tf.constant(found))["probability"].numpy().ravel()
    )
    return texts, labels, outputs.astype(np.float64)


def accuracy(examples, model):
    _, labels, predictions = reviews_of(examples, model)
    return np.mean((predictions > 0.5) == labels)


def assert_equal(found, wanted):
    """Check that two counts give the same metrics."""
    assert found.confusion.tolist() == wanted.confusion.tolist()
    for metric in metrics(SENTIMENT):
        value = metric.value(wanted)
        assert metric.value(found) == pytest.approx(value, rel=1e-6, nan_ok=True)


def words(text):
    return normalise.words(tf.constant([text]))[0].numpy().tolist()


def bucket(text):
    edges = {"1-19": 20, "20-49": 50, "50-99": 100, "100-199": 200}
    return next((name for name, end in edges.items() if len(words(text)) < end), "200+")


@pytest.mark.parametrize(
    "beam_args", [[], pytest.param(PROCESSES, marks=pytest.mark.exhaustive)], ids=["here", "two"]
)
def test_metrics_of_each_slice_are_those_of_its_reviews(
    tmp_path, examples, ngram_models, other_model, beam_args, monkeypatch
):
    """One model reads n-grams, the other one Examples; slices are the same for both."""
    # Several parts of each batch.
    monkeypatch.setattr(scoring, "_BYTES_AT_ONCE", 10_000)
    models = [ngram_models[0], other_model]
    evaluation, blessing = evaluate(tmp_path, examples, models, beam_args=beam_args)
    results = files.read(evaluation.uri)
    names = ("1-19", "20-49", "50-99", "100-199", "200+")
    assert results.slices.keys() == {WHOLE, *(("length_bucket", name) for name in names)}
    for name, model in ((CANDIDATE, models[0]), (BASELINE, models[1])):
        texts, labels, predictions = reviews_of(examples, model)
        for (feature, value), of_models in results.slices.items():
            here = np.array([not feature or bucket(text) == value for text in texts])
            assert_equal(
                of_models[name], Counts.from_predictions(labels[here], predictions[here], SENTIMENT)
            )
    assert blessing.get_string_custom_property("current_model") == models[0].uri
    assert blessing.get_string_custom_property(BASELINE_PROPERTY) == models[1].uri


@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=["one", "other"])
def test_a_model_that_is_worse_than_the_baseline_is_not_blessed(
    folder, examples, ngram_models, order
):
    models = [ngram_models[number] for number in order]
    place = folder / "".join(map(str, order))
    evaluation, blessing = evaluate(place, examples, models, max_accuracy_drop=0.0)
    found = files.read(evaluation.uri)
    own, base = map(ACCURACY.value, (found.candidate, found.baseline))
    assert own != base, "the models of this test differ"
    [name] = [path.name for path in Path(blessing.uri).iterdir()]
    assert name == ("BLESSED" if own > base else "NOT_BLESSED")
    assert blessing.get_int_custom_property("blessed") == int(own > base)


def with_origin(model, folder, **origin):
    """Return a copy of a model with an origin."""
    copy = standard_artifacts.Model()
    copy.uri = str(folder)
    shutil.copytree(model.uri, copy.uri)
    file = Path(copy.uri, "Format-Serving", ORIGIN_FILE)
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(origin))
    return copy


def test_a_baseline_that_may_have_been_trained_on_the_test_split_is_named(
    tmp_path, examples, ngram_models
):
    """The first run of every day is compared with a model of all files."""

    better, worse = sorted(ngram_models, key=lambda model: accuracy(examples, model), reverse=True)
    candidate = with_origin(worse, tmp_path / "daily", unseen_span=7, splits={})
    for name, origin, reason in (
        ("hash", {"unseen_span": None, "splits": {}}, "was trained without spans"),
        ("earlier", {"unseen_span": 6, "splits": {}}, ""),
    ):
        baseline = with_origin(better, tmp_path / name, **origin)
        evaluation, _ = evaluate(
            tmp_path / f"to {name}", examples, [candidate, baseline], max_accuracy_drop=0.0
        )
        [check] = [each for each in files.read(evaluation.uri).checks() if not each.passed]
        assert check.sentence.partition("allows 0")[2] == (
            f"; the baseline {reason}, and may have been trained on the test split: if so, set "
            "evaluation.max_accuracy_drop: 1 for this run"
            if reason
            else ""
        )


def test_a_damaged_origin_of_a_baseline_is_named(tmp_path, examples, ngram_models):
    names = ("new", "served")
    models = [
        with_origin(model, tmp_path / name, unseen_span=None, splits={})
        for model, name in zip(ngram_models, names, strict=True)
    ]
    file = Path(models[1].uri, "Format-Serving", ORIGIN_FILE)
    for content in (b"", b"[1]", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(InputError) as error:
            evaluate(tmp_path / "to damaged", examples, models)
        assert str(error.value).startswith(f"{file} is damaged (")
        assert str(error.value).endswith("; write the model again, or remove this version")


def test_the_minimum_is_that_of_the_run_and_the_baseline_is_optional(
    folder, examples, ngram_models, counted
):
    evaluation, blessing = evaluate(
        folder / "alone", examples, ngram_models[:1], min_accuracy=0.99, slices=[]
    )
    assert [path.name for path in Path(blessing.uri).iterdir()] == ["NOT_BLESSED"]
    assert blessing.get_string_custom_property(BASELINE_PROPERTY) == ""
    reviews = files.read(evaluation.uri).candidate.examples
    assert counted("texts scored") == (reviews, reviews)
    [check] = files.read(evaluation.uri).checks()
    assert check.sentence.endswith("evaluation.min_accuracy requires 0.99")
    assert files.read(evaluation.uri).slices.keys() == {WHOLE}


def test_the_check_and_the_report_get_predictions_and_mistakes(
    tmp_path, examples, ngram_models, monkeypatch
):
    for module in (scores, scoring):
        monkeypatch.setattr(module, "SAMPLE_SIZE", 100)
    evaluation, _ = evaluate(tmp_path, examples, ngram_models)
    texts, labels, predictions = reviews_of(examples, ngram_models[0])
    kept = read_sample(f"{examples.uri}/Split-test", 150)
    found = files.stored_predictions(evaluation.uri, kept)
    # The first 100 of the 150 with the smallest hash.
    assert sorted(found) == list(range(100))
    assert [found[n] for n in range(100)] == pytest.approx(predictions[:100].tolist(), abs=1e-6)
    mistakes = files.read_mistakes(evaluation.uri)
    wrong = np.flatnonzero((predictions > 0.5) != labels)
    confidence = np.sort(np.abs(predictions[wrong] - 0.5))[::-1]
    found = [abs(each.probability - 0.5) for each in mistakes]
    assert found == pytest.approx(confidence[:20].tolist(), abs=1e-6)
    known = {(text.decode()[:2000], int(label)) for text, label in zip(texts, labels, strict=True)}
    assert {(each.text, each.label) for each in mistakes} <= known


@pytest.mark.parametrize("has_baseline", [True, False])
def test_the_report_gets_the_reviews_that_only_the_candidate_gets_wrong(
    tmp_path, examples, ngram_models, other_model, monkeypatch, has_baseline
):
    # Several parts of each batch.
    monkeypatch.setattr(scoring, "_BYTES_AT_ONCE", 10_000)
    models = [ngram_models[0], *([other_model] if has_baseline else [])]
    evaluation, _ = evaluate(tmp_path, examples, models)
    changed = files.read_changed(evaluation.uri)
    if not has_baseline:
        assert changed is None
        return
    texts, labels, own = reviews_of(examples, ngram_models[0])
    _, _, base = reviews_of(examples, other_model)
    is_right, was_right = ((scores > 0.5) == labels for scores in (own, base))
    assert changed.newly_wrong == np.count_nonzero(~is_right & was_right) > 20
    assert changed.newly_right == np.count_nonzero(is_right & ~was_right) > 0
    confidence = np.sort(np.abs(own[~is_right & was_right] - 0.5))[::-1]
    found = [abs(each.probability - 0.5) for each in changed.regressions]
    assert found == pytest.approx(confidence[:20].tolist(), abs=1e-6)
    known = {text.decode()[:2000] for text in np.array(texts)[~is_right & was_right].tolist()}
    assert {each.text for each in changed.regressions} <= known


def test_a_feature_of_the_candidate_is_a_slice(examples, other_model):
    settings = Evaluation.model_construct(slices=["is_long"], patterns={})
    stage = ScoreFiles({CANDIDATE: f"{other_model.uri}/Format-Serving"}, SENTIMENT, settings)
    stage.setup()
    [scores] = stage.process(split_files([examples], ["test"]))
    texts, labels, predictions = reviews_of(examples, other_model)
    for value in ("yes", "no"):
        here = np.array([(len(words(text)) >= 100) == (value == "yes") for text in texts])
        found = scores.slices["is_long", value][CANDIDATE]
        assert_equal(found, Counts.from_predictions(labels[here], predictions[here], SENTIMENT))


def test_the_texts_in_which_a_pattern_is_found_are_a_slice(examples, other_model):
    settings = Evaluation(slices=[], patterns={"about": "(?i)ÜBER|absent"})
    stage = ScoreFiles({CANDIDATE: f"{other_model.uri}/Format-Serving"}, SENTIMENT, settings)
    stage.setup()
    [scores] = stage.process(split_files([examples], ["test"]))
    texts, labels, predictions = reviews_of(examples, other_model)
    about = np.array(["über" in text.decode() for text in texts])
    assert 0 < about.sum() < len(texts)
    for value, here in (("yes", about), ("no", ~about)):
        found = scores.slices["about", value][CANDIDATE]
        assert_equal(found, Counts.from_predictions(labels[here], predictions[here], SENTIMENT))


TOPICS = Labels(("refund", "lost card", "Ärger", "never asked"))


@pytest.fixture(scope="module")
def topics(folder):
    """Examples of four classes, of which the last one has none."""
    return write_examples(folder / "topics", 120, TOPICS)


@pytest.fixture(scope="module")
def topic_model(folder):
    return write_model(ClassModel(4, 3), folder / "topic-model", TOPICS)


def scores_of(examples, model):
    """Return texts, labels, and the probabilities of the signature for single Examples."""
    found = read_sample(f"{examples.uri}/Split-test", 1000)
    parsed = [tf.train.Example.FromString(one).features.feature for one in found]
    texts = [features["text"].bytes_list.value[0].decode() for features in parsed]
    labels = np.array([features["label"].int64_list.value[0] for features in parsed])
    loaded = tf.saved_model.load(f"{model.uri}/Format-Serving")
    outputs = loaded.signatures["serving_default"](tf.constant(found))["probabilities"]
    return found, texts, labels, outputs.numpy().astype(np.float64)


def test_a_sample_of_the_reviews_is_kept_with_their_scores(
    tmp_path, topics, topic_model, monkeypatch
):
    # Several parts, because the limit allows few Examples of four classes.
    monkeypatch.setattr(scoring, "_SCORES_AT_ONCE", 64)
    monkeypatch.setattr(reference, "_SCORES", 160)
    monkeypatch.setattr(reference, "_LEAST_ROWS", 1)
    monkeypatch.setattr(reference, "TEXTS", 10)
    evaluation, _ = evaluate(tmp_path, topics, [topic_model])
    (tmp_path / "assets.extra").mkdir()
    kept = tmp_path / reference.KEPT_FILE
    kept.write_bytes(Path(evaluation.uri, reference.REFERENCE_FILE).read_bytes())
    found = reference.read(str(tmp_path), TOPICS)
    examples, texts, labels, scores = scores_of(topics, topic_model)
    chosen = sorted(range(len(examples)), key=lambda n: zlib.crc32(examples[n]))[:40]
    assert len(examples) > len(found) == 40
    np.testing.assert_allclose(found.scores, scores[chosen], rtol=1e-5)
    assert found.labels.tolist() == labels[chosen].tolist()
    assert [text.decode() for text in found.texts] == [texts[n][:1000] for n in chosen[:10]]


def test_four_classes_are_evaluated_in_parts_and_slices(tmp_path, topics, topic_model, monkeypatch):
    baseline = write_model(ClassModel(4, 2), tmp_path / "baseline", TOPICS)
    # Several batches, because the limit allows few Examples of four classes.
    monkeypatch.setattr(scoring, "_SCORES_AT_ONCE", 64)
    evaluation, blessing = evaluate(tmp_path, topics, [topic_model, baseline])
    results = files.read(evaluation.uri)
    assert results.labels == TOPICS
    for name, model in ((CANDIDATE, topic_model), (BASELINE, baseline)):
        _, texts, labels, scores = scores_of(topics, model)
        for (feature, value), of_models in results.slices.items():
            here = np.array([not feature or bucket(text) == value for text in texts])
            wanted = Counts.from_predictions(labels[here], scores[here], TOPICS)
            found = of_models[name]
            assert found.confusion.tolist() == wanted.confusion.tolist()
            for metric in metrics(TOPICS):
                value = metric.value(wanted)
                assert metric.value(found) == pytest.approx(value, rel=1e-5, nan_ok=True)
    assert results.missing.startswith("The test split has no texts of the class never asked")
    assert blessing.get_string_custom_property(BASELINE_PROPERTY) == baseline.uri
    # No minimum recall is set, so the missing class blocks nothing.
    assert not [check for check in results.checks() if "recall" in check.sentence]


def test_mistakes_confusions_and_sampled_predictions_of_four_classes(
    tmp_path, topics, topic_model, monkeypatch
):
    monkeypatch.setattr(scoring, "_STORED_CLASSES", 2)
    evaluation, _ = evaluate(tmp_path, topics, [topic_model])
    examples, texts, labels, scores = scores_of(topics, topic_model)
    predicted = scores.argmax(axis=1)
    stored = files.stored_predictions(evaluation.uri, examples)
    assert sorted(stored) == list(range(len(examples)))
    for number, found in stored.items():
        best = np.argsort(-scores[number], kind="stable")[:2].tolist()
        assert found == pytest.approx({n: scores[number, n] for n in best}, abs=1e-6)
    known = {(text[:2000], int(label), int(answer)) for text, label, answer in zip(
        texts, labels, predicted, strict=True
    )}  # fmt: skip
    mistakes = files.read_mistakes(evaluation.uri)
    assert len(mistakes) == 20
    assert {(each.text, each.label, each.predicted) for each in mistakes} <= known
    confusions = files.read_confusions(evaluation.uri)
    wanted = {(a, b) for a, b in zip(labels.tolist(), predicted.tolist(), strict=True) if a != b}
    assert confusions.keys() == wanted
    for (label, answer), shown in confusions.items():
        here = np.flatnonzero((labels == label) & (predicted == answer))
        best = {}
        for n in here.tolist():
            start = texts[n][:300]
            best[start] = max(best.get(start, 0.0), float(scores[n, answer]))
        wanted = sorted(best.values(), reverse=True)[:3]
        assert [each.probability for each in shown] == pytest.approx(wanted, abs=1e-6)
        assert {(each.label, each.predicted) for each in shown} == {(label, answer)}
        assert len({each.text for each in shown}) == len(shown)
        assert {each.text for each in shown} <= best.keys()


@pytest.mark.parametrize(
    ("served", "clause"),
    [
        ("sentiment", " has other classes: it has negative, positive, and this model refund, "),
        ("order", " has the same classes in another order: it has never asked, Ärger, lost card, "),
        pytest.param(
            "fewer",
            " has other classes: it has refund, lost card, Ärger, and this model refund, ",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "name",
            " has other classes: it has refund, lost card, ärger, never asked, and this ",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_served_model_of_other_classes_is_no_baseline(
    tmp_path, topics, topic_model, ngram_models, served, clause
):
    """The gate of the drop has no result, and the model is blessed."""
    names = {
        "order": TOPICS.names[::-1],
        "fewer": TOPICS.names[:3],
        "name": ("refund", "lost card", "ärger", "never asked"),
    }
    if served == "sentiment":
        baseline = ngram_models[0]
    else:
        classes = Labels(names[served])
        model = ClassModel(classes.number, 3)
        baseline = write_model(model, tmp_path / "baseline", classes)
    baseline.set_string_custom_property(BASELINE_PROPERTY, "version 7")
    models = [topic_model, baseline]
    evaluation, blessing = evaluate(tmp_path, topics, models, max_accuracy_drop=0.0)
    found = files.read(evaluation.uri)
    assert found.other_classes.startswith(f"version 7{clause}")
    assert found.baseline is None
    assert [check.sentence.split(",")[1] for check in found.checks()] == [
        " evaluation.min_accuracy requires 0.1"
    ]
    assert [path.name for path in Path(blessing.uri).iterdir()] == ["BLESSED"]
    assert blessing.get_string_custom_property(BASELINE_PROPERTY) == ""


@pytest.mark.parametrize(
    ("found", "served", "is_refused"),
    [
        ("1 and 2", "1 to 5", True),
        ("0 and 1", "-1 to 1", True),
        ("1 to 5", "1 and 2", False),
        ("0 and 1", "1 to 5", False),
        ("1 to 5", "1 to 5", False),
        ("", "1 to 5", False),
        ("1 and 2", "", False),
    ],
)
def test_a_model_of_another_scale_that_the_labels_fit_too_is_no_baseline(
    tmp_path, ngram_models, found, served, is_refused
):
    examples = write_examples(tmp_path / "examples", 60, replace(SENTIMENT, label_scale=found))
    labels = replace(SENTIMENT, label_scale=served)
    baseline = write_model(NgramModel(), tmp_path / "baseline", labels)
    models = [ngram_models[0], baseline]
    if not is_refused:
        evaluate(tmp_path, examples, models)
        return
    with pytest.raises(InputError, match=f"the scale {found}, .* the scale {served}, which they"):
        evaluate(tmp_path, examples, models)


def test_the_files_of_two_classes_can_be_read_by_earlier_versions(folder, examples, ngram_models):
    evaluation, _ = evaluate(folder / "keys", examples, ngram_models)
    counts = files.read_json(evaluation.uri, files.COUNTS_FILE)
    assert counts.keys() == {"settings", "slices"}
    _, _, models = counts["slices"][0]
    assert list(models[CANDIDATE]) == ["histogram", "confusion", "total"]
    [mistake, *_] = files.read_json(evaluation.uri, files.MISTAKES_FILE)
    assert list(mistake) == ["text", "label", "predicted", "probability"]
    confusions = files.read_confusions(evaluation.uri)
    assert mistake["text"].startswith(confusions[mistake["label"], mistake["predicted"]][0].text)
    # A version that knew two classes only wrote no file of the classes.
    Path(evaluation.uri, "labels.json").unlink()
    assert files.read(evaluation.uri).labels == SENTIMENT


def with_kept_reviews(model, evaluation, folder):
    """Return a copy of a model that keeps reviews of an evaluation, as a pushed version does."""
    served = standard_artifacts.Model()
    served.uri = str(folder / "served")
    target = Path(served.uri, "Format-Serving")
    shutil.copytree(Path(model.uri, "Format-Serving"), target)
    (target / "assets.extra").mkdir(exist_ok=True)
    kept = Path(evaluation.uri, reference.REFERENCE_FILE)
    shutil.copy(kept, target / reference.KEPT_FILE)
    return served


def of_span(examples, span):
    """Return the same Examples as those of an input with spans."""
    found = standard_artifacts.Examples()
    found.uri, found.split_names = examples.uri, examples.split_names
    found.set_int_custom_property(SPAN_PROPERTY_NAME, span)
    return found


def test_a_new_span_is_compared_with_that_of_the_served_model(tmp_path, examples, ngram_models):
    model, other = ngram_models
    first, _ = evaluate(tmp_path / "first", of_span(examples, 7), [model])
    served = with_kept_reviews(model, first, tmp_path)
    # A span with the same reviews.
    again, _ = evaluate(tmp_path / "again", of_span(examples, 8), [other, served])
    found = new_span.read(again.uri)
    figures = {figure.name: figure for figure in found.figures}
    assert not found.is_alarm and found.sentence.startswith("no alarm: ")
    base = files.read(again.uri).baseline
    assert figures["accuracy"].value == figures["accuracy"].reference == ACCURACY.value(base)
    assert figures["scores"].value == pytest.approx(0, abs=1e-6)

    def kettles(count):
        return [f"a kettle that leaks {n}" for n in range(count)]

    newer = of_span(write_examples(tmp_path / "newer", 240, make_texts=kettles), 8)
    changed, _ = evaluate(tmp_path / "changed", newer, [other, served])
    found = new_span.read(changed.uri)
    assert "words" in found.alarms and found.ngrams
    assert found.sentence.startswith(f"alarm of severity {found.severity} (")


REASONS = {
    "no span before": "the served model was not evaluated on a span",
    "the same span": "the served model was evaluated on this span or a later one",
    "no reviews": "the served model keeps no reviews, see push.keep_reviews",
    "few reviews": "12 reviews are too few, 20 are required",
    "a damaged file": "is damaged (",
}


@pytest.mark.parametrize("problem", REASONS)
def test_a_span_that_is_not_compared_has_the_reason(tmp_path, examples, ngram_models, problem):
    model, other = ngram_models
    before = examples if problem == "no span before" else of_span(examples, 7)
    source = of_span(examples, 7 if problem == "the same span" else 8)
    if problem == "few reviews":
        source = of_span(write_examples(tmp_path / "few", 12), 8)
    served = model
    if problem != "no reviews":
        first, _ = evaluate(tmp_path / "first", before, [model])
        served = with_kept_reviews(model, first, tmp_path)
    if problem == "a damaged file":
        Path(served.uri, "Format-Serving", reference.KEPT_FILE).write_bytes(b"PAR1")
    evaluation, _ = evaluate(tmp_path / "second", source, [other, served])
    assert REASONS[problem] in new_span.read(evaluation.uri).sentence
    assert files.read(evaluation.uri).baseline


def test_without_spans_and_without_a_served_model_nothing_is_compared(
    tmp_path, examples, ngram_models
):
    model, other = ngram_models
    first, _ = evaluate(tmp_path / "first", of_span(examples, 7), [model])
    assert new_span.read(first.uri) is None
    served = with_kept_reviews(model, first, tmp_path)
    evaluation, _ = evaluate(tmp_path / "second", examples, [other, served])
    assert new_span.read(evaluation.uri) is None


def test_a_span_of_several_classes_is_compared(tmp_path, topics, topic_model):
    first, _ = evaluate(tmp_path / "first", of_span(topics, 7), [topic_model])
    served = with_kept_reviews(topic_model, first, tmp_path)
    again, _ = evaluate(tmp_path / "again", of_span(topics, 8), [topic_model, served])
    found = new_span.read(again.uri)
    assert not found.is_alarm and len(found.figures) == 6
    file = Path(again.uri, new_span.DRIFT_FILE)
    stored = json.loads(file.read_text())
    file.write_text(json.dumps({**stored, "key_of_a_later_version": 1}))
    assert new_span.read(again.uri) == found
    del stored["severity"]
    file.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match="the comparison is incomplete"):
        new_span.read(again.uri)


def test_the_span_survives_the_metadata_of_kubeflow_pipelines(examples):
    """Its numbers are floats, and `span` is a property of Examples too."""
    written = RuntimeArtifact(uri=examples.uri, name="1")
    schema = compiler_utils.get_artifact_schema(standard_artifacts.Examples)
    written.type.CopyFrom(ArtifactTypeSchema(instance_schema=schema))
    properties = kubeflow_v2_entrypoint_utils._get_json_metadata_mapping(of_span(examples, 20_000))
    json_format.ParseDict(properties, written.metadata)
    found = kubeflow_v2_entrypoint_utils._parse_raw_artifact(written, {})
    assert found.has_custom_property(SPAN_PROPERTY_NAME)
    assert found.get_int_custom_property(SPAN_PROPERTY_NAME) == 20_000
