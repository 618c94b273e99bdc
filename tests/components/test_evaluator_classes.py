"""The metrics and the thresholds of more than two classes."""

import json
import math
import pickle

import apache_beam as beam
import numpy as np
import pandas as pd
import pytest
import tensorflow_model_analysis as tfma
from apache_beam.runners.portability.fn_api_runner import fn_runner
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    classification_report,
    cohen_kappa_score,
    confusion_matrix,
    f1_score,
    log_loss,
    mean_absolute_error,
)

from components.evaluator import files, metrics, tfma_files
from components.evaluator.counts import TOP, Confusion, Counts
from components.evaluator.files import BASELINE, CANDIDATE, WHOLE, OtherModel, Results, WrongAnswer
from components.evaluator.metrics import class_metrics, key_figures
from components.evaluator.scores import (
    ChangedAnswers,
    Mistake,
    Scores,
    confused_reviews,
    confusion_texts,
    merge,
)
from components.evaluator.thresholds import Evaluation
from core.errors import InputError
from preprocessing.labels import Labels

pytestmark = pytest.mark.both_stacks

STARS = Labels(("1", "2", "3", "4", "5"), is_ordered=True)
TOPICS = Labels(("refund", "lost, card", "Ärger", "no one asks"))
"""The last class has neither a text nor an answer."""


def scored(labels, predicted, classes, confidence=0.6):
    """Return Counts of answers whose other classes are equally probable."""
    scores = np.full((len(labels), classes.number), (1 - confidence) / (classes.number - 1))
    scores[np.arange(len(labels)), predicted] = confidence
    return Counts.from_predictions(np.array(labels, np.int64), scores, classes)


def of_confusion(matrix, classes):
    """Return Counts with these numbers of reviews by label and answer."""
    cells = np.argwhere(np.array(matrix) > 0)
    numbers = [matrix[label][answer] for label, answer in cells]
    labels, predicted = np.repeat(cells, numbers, axis=0).T
    return scored(labels, predicted, classes)


def results(own, classes, base=None, other=None, **thresholds):
    models = {CANDIDATE: own} | ({BASELINE: base} if base else {})
    return Results(classes, Evaluation(**thresholds), {WHOLE: models}, other)


def values(counts, classes):
    """Return title -> value of all metrics with a title."""
    return {each.title: each.value(counts) for each in metrics.metrics(classes) if each.title}


def random_reviews(classes, size=600):
    """Return labels and scores, float32 without ties, of which about half are right."""
    chance = np.random.default_rng(0)
    labels = chance.choice(classes.number - 1, size)
    scores = chance.random((size, classes.number)) + 0.8 * np.eye(classes.number)[labels]
    scores[:, -1] = 0.001
    return labels, (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    """The counts of some reviews, and model, name and class -> value of TFMA's metrics."""
    labels, scores = random_reviews(TOPICS)
    answers = np.eye(TOPICS.number)[scores.argmax(axis=1)]
    config = tfma_files.eval_config(TOPICS, [], has_baseline=False)
    own = text_format.MessageToString(config.metrics_specs[0])
    # The metrics of TFMA for single classes have thresholds. With a probability of 1 for the
    # answer, a threshold of 0.5 selects the answer.
    of_classes = """
      metrics_specs {
        model_names: "answers"
        binarize { class_ids { values: [0, 1, 2, 3] } }
        metrics { class_name: "Precision" }
        metrics { class_name: "Recall" }
        metrics { class_name: "F1Score" }
      }
      metrics_specs {
        model_names: "answers"
        aggregate { macro_average: true class_weights { key: 0 value: 1.0 }
          class_weights { key: 1 value: 1.0 } class_weights { key: 2 value: 1.0 } }
        metrics { class_name: "F1Score" }
      }
    """
    config = text_format.Parse(
        f"""
        model_specs {{ name: "scores" label_key: "label" prediction_key: "scores" }}
        model_specs {{ name: "answers" label_key: "label" prediction_key: "answers" }}
        slicing_specs {{}}
        metrics_specs {{
          model_names: "scores" {own}
          metrics {{
            class_name: "MultiClassConfusionMatrixAtThresholds" config: '{{"thresholds": [0.0]}}'
          }}
        }}
        {of_classes}
        """,
        tfma.EvalConfig(),
    )
    reviews = pd.DataFrame(
        {"label": labels, "scores": scores.astype(np.float64).tolist(), "answers": answers.tolist()}
    )
    with pytest.MonkeyPatch.context() as patch:
        pipeline = beam.Pipeline
        patch.setattr(beam, "Pipeline", lambda: pipeline(runner=fn_runner.FnApiRunner()))
        folder = str(tmp_path_factory.mktemp("tfma"))
        tfma.analyze_raw_data(reviews, config, output_path=folder)
    [of_all] = tfma.load_metrics(folder)
    found = {
        (
            item.key.model_name,
            item.key.name,
            item.key.sub_key.class_id.value if item.key.HasField("sub_key") else None,
        ): item.value
        for item in of_all.metric_keys_and_values
    }
    return Counts.from_predictions(labels, scores.astype(np.float64), TOPICS), found


@pytest.mark.slow
def test_metrics_of_all_classes_are_those_of_tfma(oracle):
    counts, theirs = oracle
    of_tfma = [each for each in metrics.metrics(TOPICS) if each.tfma]
    assert len(of_tfma) == 4
    for metric in of_tfma:
        wanted = theirs["scores", metric.name, None].double_value.value
        # Keras computes in float32.
        assert metric.value(counts) == pytest.approx(wanted, rel=1e-6), metric.name


@pytest.mark.slow
def test_the_confusion_is_that_of_tfma(oracle):
    counts, theirs = oracle
    [name] = [name for _, name, _ in theirs if name.startswith("multi_class_confusion")]
    found = theirs["scores", name, None].multi_class_confusion_matrix_at_thresholds
    [matrix] = found.matrices
    wanted = np.zeros((TOPICS.number, TOPICS.number), int)
    for cell in matrix.entries:
        wanted[cell.actual_class_id, cell.predicted_class_id] = cell.num_weighted_examples
    assert counts.confusion.tolist() == wanted.tolist()


@pytest.mark.slow
def test_metrics_of_each_class_are_those_of_tfma(oracle):
    counts, theirs = oracle
    for label in range(TOPICS.number - 1):
        for metric in class_metrics(TOPICS, label):
            wanted = theirs["answers", metric.name, label].double_value.value
            assert metric.value(counts) == pytest.approx(wanted, rel=1e-6), metric.title
    wanted = theirs["answers", "f1_score", None].double_value.value
    assert values(counts, TOPICS)["macro F1"] == pytest.approx(wanted, rel=1e-6)


def test_metrics_of_stars_are_those_of_scikit_learn():
    chance = np.random.default_rng(1)
    labels = chance.choice(5, 500, p=[0.1, 0.05, 0.1, 0.25, 0.5])
    scores = chance.dirichlet(np.ones(5), 500) + 0.4 * np.eye(5)[labels]
    scores /= scores.sum(axis=1, keepdims=True)
    counts = Counts.from_predictions(labels, scores, STARS)
    predicted = scores.argmax(axis=1)
    found = values(counts, STARS)
    wanted = {
        "accuracy": (labels == predicted).mean(),
        "macro F1": f1_score(labels, predicted, average="macro"),
        "log loss": log_loss(labels, scores),
        "mean absolute error": mean_absolute_error(labels, predicted),
        "quadratic weighted kappa": cohen_kappa_score(labels, predicted, weights="quadratic"),
    }
    by_class = classification_report(labels, predicted, output_dict=True)
    for label in range(5):
        for name, key in (("recall", "recall"), ("precision", "precision"), ("F1", "f1-score")):
            wanted[f"{name} of class {label + 1}"] = by_class[str(label)][key]
    assert {title: found[title] for title in wanted} == pytest.approx(wanted)
    recalls = [found[f"recall of class {name}"] for name in STARS.names]
    assert found["lowest recall of a class"] == min(recalls)
    assert counts.confusion.tolist() == confusion_matrix(labels, predicted).tolist()


CLASSES = st.integers(3, 6)


@st.composite
def parts(draw):
    """Draw classes, and labels, scores and the part of each review."""
    classes = Labels(tuple(map(str, range(draw(CLASSES)))), is_ordered=True)
    reviews = draw(st.integers(1, 12))
    label = st.integers(0, classes.number - 1)
    score = st.floats(0, 1, width=32) | st.sampled_from([0.0, 0.25, 0.5, 1.0])
    row = st.lists(score, min_size=classes.number, max_size=classes.number)
    drawn = [draw(st.lists(each, min_size=reviews, max_size=reviews)) for each in (label, row)]
    of_part = draw(st.lists(st.integers(0, 2), min_size=reviews, max_size=reviews))
    return classes, np.array(drawn[0]), np.array(drawn[1], np.float64), np.array(of_part)


@pytest.mark.slow
@given(parts())
def test_any_partition_of_the_predictions_has_the_same_metrics(drawn):
    classes, labels, scores, of_part = drawn
    whole = Counts.from_predictions(labels, scores, classes)
    divided = [
        Counts.from_predictions(labels[of_part == part], scores[of_part == part], classes)
        for part in (2, 0, 1)
    ]
    added = divided[0] + divided[1] + divided[2]
    stored = Counts.from_json(json.loads(json.dumps(whole.to_json())), classes)
    for found in (added, stored):
        assert values(found, classes) == pytest.approx(values(whole, classes), nan_ok=True)
        assert found.confusion.tolist() == whole.confusion.tolist()
        assert (found.histogram != whole.histogram).nnz == 0
    assert (stored.total, stored.loss, stored.top) == (whole.total, whole.loss, whole.top)
    intervals = [each.interval(added) for each in metrics.metrics(classes)]
    assert intervals == [each.interval(whole) for each in metrics.metrics(classes)]


def test_equal_probabilities_are_ranked_as_they_are_decided():
    """A model that knows nothing answers the first class, and does not find all labels."""
    labels = np.arange(5)
    found = Counts.from_predictions(labels, np.full((5, 5), 0.2), STARS)
    assert (found.right.sum(), found.top) == (1, TOP)


@pytest.mark.slow
def test_the_interval_of_the_f1_contains_the_true_value_in_95_of_100_samples():
    """The method of Lam, Gopal and Qian (2023), with a class of a fifth of the reviews."""
    chance = np.random.default_rng(2)
    [_, _, f1] = class_metrics(STARS, 0)
    true = np.array([[0.14, 0.06, 0, 0, 0], [0.05, 0.75, 0, 0, 0]])
    wanted = 2 * 0.14 / (0.2 + 0.19)
    covered = 0
    for _ in range(1000):
        matrix = np.zeros((5, 5), int)
        matrix[:2] = chance.multinomial(150, true.ravel()).reshape(2, 5)
        found = of_confusion(matrix.tolist(), STARS)
        low, high = f1.interval(found)
        assert 0 <= low <= f1.value(found) <= high <= 1
        covered += low <= wanted <= high
    assert 930 <= covered <= 970


def test_metrics_of_a_class_without_texts_and_answers_are_not_defined():
    counts = scored([0, 1, 2], [0, 1, 1], TOPICS)
    recall, precision, f1 = class_metrics(TOPICS, 3)
    for metric in (recall, precision, f1):
        assert math.isnan(metric.value(counts))
        assert metric.interval(counts) is None
    found = values(counts, TOPICS)
    assert found["macro F1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert found["lowest recall of a class"] == 0


def test_key_figures_are_metrics_of_all_classes_together():
    titles = [metric.title for metric in key_figures(STARS)]
    assert titles == [
        *("accuracy", "macro F1", "lowest recall of a class", "log loss"),
        *("label among the best 3", "calibration", "mean absolute error"),
        "quadratic weighted kappa",
    ]
    assert not {"mean absolute error", "quadratic weighted kappa"} & {
        metric.title for metric in key_figures(TOPICS)
    }


def sentences(found):
    return [(check.sentence, check.passed) for check in found.checks()]


def test_each_class_has_to_reach_the_minimum_recall():
    own = of_confusion(
        [[1, 9, 0, 0, 0], [0, 10, 0, 0, 0], [0, 8, 2, 0, 0], [0, 0, 0, 7, 3], [0, 0, 0, 0, 60]],
        STARS,
    )
    [(low, passed)] = sentences(results(own, STARS, min_accuracy=0.0))
    assert not passed
    assert low == (
        "recall of 2 of 5 classes is too low: 1 (0.1000, 1 of 10), 3 (0.2000, 2 of 10), "
        "evaluation.min_class_recall requires 0.4; set training.class_weights: balanced (unless "
        "it is set already), add reviews of these classes, or set a lower "
        "evaluation.min_class_recall"
    )
    [high] = sentences(results(own, STARS, min_accuracy=0.0, min_class_recall=0.1))
    assert high == (
        "lowest recall of a class is that of 1 (0.1000, 1 of 10), "
        "evaluation.min_class_recall requires 0.1",
        True,
    )
    assert sentences(results(own, STARS, min_accuracy=0.0, min_class_recall=0.0)) == []


def test_many_classes_are_one_sentence():
    many = Labels(tuple(f"topic {n}" for n in range(1000)))
    own = scored(np.arange(1000), np.zeros(1000, int), many)
    [(sentence, passed)] = sentences(results(own, many, min_accuracy=0.0))
    assert not passed
    assert "recall of 999 of 1,000 classes is too low: topic 1 (0.0000, 0 of 1), " in sentence
    assert " and 994 more, " in sentence
    assert len(sentence) < 400


def test_a_class_that_is_not_in_the_test_split_has_not_passed():
    own = scored([0, 0, 1, 2], [0, 0, 1, 2], TOPICS)
    found = results(own, TOPICS, min_accuracy=0.0)
    [(_, tested), (missing, not_tested)] = sentences(found)
    assert (tested, not_tested) == (True, False)
    assert missing == (
        "recall was not checked for class no one asks: the test split has no such texts, "
        "evaluation.min_class_recall requires 0.4; add such texts to the test split"
    )
    assert found.missing == (
        "The test split has no texts of the class no one asks, so it was not tested."
    )
    # Without a threshold the class is still named.
    assert results(own, TOPICS, min_accuracy=0.0, min_class_recall=0.0).missing == found.missing
    named = {"no one asks": 0.1, "refund": 0.9}
    checked = sentences(results(own, TOPICS, min_accuracy=0.0, min_class_recall=named))
    assert [passed for _, passed in checked] == [False, True]
    assert checked[1][0] == (
        "recall of class refund is 1.0000 (2 of 2), evaluation.min_class_recall requires 0.9"
    )


def test_minimums_of_single_classes(tmp_path):
    own = of_confusion([[3, 1, 0, 0], [0, 0, 5, 0], [0, 0, 4, 0], [0, 0, 0, 1]], TOPICS)
    found = results(own, TOPICS, min_accuracy=0.0, min_class_recall={"refund": 0.8, "Ärger": 1.0})
    files.write(str(tmp_path), found)
    (refund, _), (_, anger) = sentences(files.read(str(tmp_path)))
    assert anger
    assert refund == (
        "recall of class refund is 0.7500 (3 of 4), evaluation.min_class_recall requires 0.8; set "
        "training.class_weights: balanced (unless it is set already), add texts of class refund, "
        "or set a lower evaluation.min_class_recall"
    )
    wrong = results(own, TOPICS, min_class_recall={"refunds": 0.8})
    with pytest.raises(InputError, match=r"no class is called 'refunds', did you mean refund\?"):
        wrong.checks()


@pytest.mark.parametrize("minimum", [0.9, {"two\nlines": 0.9, "a, b": 0.9}])
@pytest.mark.parametrize("names", [("two\nlines", "a, b"), ("two\nlines", "a, b", "x" * 9999)])
def test_sentences_with_any_names_are_short_lines(names, minimum):
    labels = Labels(names)
    # One text of the first class, which is answered with the second one.
    scores = [0.9] if labels.is_binary else [[0.1, 0.9, 0.0]]
    own = Counts.from_predictions(np.array([0]), np.array(scores), labels)
    found = results(
        own, labels, min_class_recall=minimum, other=OtherModel("version 7", names[::-1])
    )
    checked = [sentence for sentence, _ in sentences(found)]
    for sentence in (*checked, found.missing, found.other_classes):
        assert "\n" not in sentence
        assert len(sentence) < 400
    assert any(r"two\nlines" in sentence for sentence in checked)
    assert '"a, b"' in found.missing


def test_classes_of_yaml_are_text():
    given = {4: 0.5, True: 0.5, "A b": 0}
    assert Evaluation(min_class_recall=given).named_classes == ["4", "true", "A b"]


@pytest.mark.parametrize("value", [2, "high", [0.5], {"refund": 2}, {"refund": None}, True, {}])
def test_a_minimum_that_is_no_fraction_is_refused(value):
    with pytest.raises(ValueError, match="must be a number from 0 to 1, or a mapping"):
        Evaluation(min_class_recall=value)


@pytest.mark.parametrize(
    ("classes", "clause"),
    [
        (("negative", "positive"), "has other classes: it has negative, positive, and this model "),
        (
            ("5", "4", "3", "2", "1"),
            "has the same classes in another order: it has 5, 4, 3, 2, 1, and this model 1, 2, 3",
        ),
        (tuple(map(str, range(100))), "it has 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 88 more, "),
    ],
)
def test_a_model_of_other_classes_is_named_and_is_no_baseline(tmp_path, classes, clause):
    own = scored(range(5), range(5), STARS)
    found = results(own, STARS, other=OtherModel("version 7", classes), max_accuracy_drop=0.0)
    files.write(str(tmp_path), found)
    read = files.read(str(tmp_path))
    assert read.other_classes.startswith("version 7 has ")
    assert clause in read.other_classes
    assert not [sentence for sentence, _ in sentences(read) if "baseline" in sentence]
    assert [check.passed for check in read.checks()] == [True, True]


def test_functions_of_tfma_read_the_metrics_of_a_class(tmp_path):
    own, base = (scored([0, 0, 1, 2], [0, 1, 1, last], TOPICS) for last in (2, 1))
    found = results(own, TOPICS, base)
    files.write(str(tmp_path), found)
    tfma_files.write(str(tmp_path), found, dict.fromkeys((CANDIDATE, BASELINE), "/model"))
    [(_, by_output)] = tfma.load_eval_result(str(tmp_path), model_name=CANDIDATE).slicing_metrics
    assert by_output[""]["classId:0"]["recall"] == {"doubleValue": 0.5}
    assert by_output[""]["classId:1"]["precision"] == {"doubleValue": 0.5}
    assert by_output[""][""]["sparse_categorical_accuracy"] == {"doubleValue": 0.75}


def test_counts_of_many_classes_are_small():
    """Flink ends a job with a record that is larger than its sort buffer, 89 MB by default."""
    many = Labels(tuple(map(str, range(1000))))
    chance = np.random.default_rng(0)
    parts = [
        scored(chance.integers(0, 1000, 2000), chance.integers(0, 1000, 2000), many)
        for _ in range(3)
    ]
    total = sum(parts[1:], parts[0])
    assert total.examples == 6000
    assert len(pickle.dumps(total)) < 1 << 18
    assert len(json.dumps(total.to_json())) < 1 << 18


def test_the_most_frequent_confusions_come_first():
    own = of_confusion(
        [[5, 2, 0, 0, 0], [2, 0, 0, 0, 0], [0, 0, 9, 0, 0], [0, 0, 0, 1, 3], [0, 0, 0, 0, 60]],
        STARS,
    )
    assert own.confusions(3) == [
        *(Confusion(3, 4, 3, 0.75), Confusion(1, 0, 2, 1.0), Confusion(0, 1, 2, 2 / 7)),
    ]


def scores_of(*mistakes):
    """Return the Scores of reviews of STARS that are answered wrongly."""
    _, _, _, labels, predicted, _ = zip(*mistakes, strict=True)
    slices = {WHOLE: {CANDIDATE: scored(labels, predicted, STARS)}}
    return Scores(slices, [], list(mistakes), confusion_texts(mistakes))


def test_confusions_have_the_texts_of_their_most_confident_mistakes():
    numbered = [Mistake(-0.5 - n / 100, n, f"text {n}" + "x" * 400, 0, 1, 0.5) for n in range(8)]
    rare = Mistake(-0.9, 99, "rare", 4, 0, 0.9)
    again = numbered[7]._replace(hash=100)
    merged = merge([scores_of(*numbered[::2], rare), scores_of(*numbered[1::2], again)])
    found = confused_reviews(merged)
    assert list(found) == [(0, 1), (4, 0)]
    assert [each.text[:6] for each in found[0, 1]] == ["text 7", "text 6", "text 5"]
    assert max(len(each.text) for each in found[0, 1]) == 300
    assert found[4, 0] == [WrongAnswer("rare", 4, 0, 0.9)]


def test_of_copies_of_a_review_one_is_a_stored_mistake():
    """Real exports repeat reviews. Twenty copies of a mistake would hide the others."""
    copies = [Mistake(-0.9, n, "copied", 0, 1, 0.9) for n in range(40)]
    others = [Mistake(-0.8, n, f"text {n}", 0, 1, 0.8) for n in range(9)]
    otherwise_labelled = Mistake(-0.7, 7, "copied", 4, 1, 0.7)
    parts = [[*copies[::2], *others[::2]], [*copies[1::2], *others[1::2], otherwise_labelled]]
    merged = merge(
        scores_of(*part)._replace(changed=ChangedAnswers(len(part), 0, part)) for part in parts
    )
    expected = ["copied", *(f"text {n}" for n in range(9)), "copied"]
    assert [each.text for each in merged.mistakes] == expected
    assert merged.changed.newly_wrong == 50
    assert [each.text for each in merged.changed.regressions] == expected


def test_the_file_of_confusions_keeps_its_form(tmp_path):
    confusions = {(0, 1): [WrongAnswer("ä", 0, 1, 0.9), WrongAnswer("b", 0, 1, 0.8)], (4, 0): []}
    files.write_predictions(str(tmp_path), {}, [], confusions)
    assert files.read_json(str(tmp_path), files.CONFUSIONS_FILE) == [
        {
            "label": 0,
            "predicted": 1,
            "texts": [{"text": "ä", "probability": 0.9}, {"text": "b", "probability": 0.8}],
        },
        {"label": 4, "predicted": 0, "texts": []},
    ]
    assert files.read_confusions(str(tmp_path)) == confusions
    # An early version evaluated two classes without this file.
    (tmp_path / files.CONFUSIONS_FILE).unlink()
    assert files.read_confusions(str(tmp_path)) == {}


def test_equal_examples_are_sampled():
    """The test split may contain a text twice, and predictions of several classes have no order."""
    sampled = [(7, "digest", {"0": 0.9, "1": 0.1}), (7, "digest", {"0": 0.9, "1": 0.1})]
    empty = scores_of(Mistake(-0.9, 1, "a", 4, 0, 0.9))
    assert merge([empty._replace(sampled=[each]) for each in sampled]).sampled == sampled
