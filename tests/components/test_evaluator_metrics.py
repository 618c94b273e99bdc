"""The metrics of an evaluation: those of TFMA, whose functions read our files."""

import json
import math
import pickle
import re

import apache_beam as beam
import numpy as np
import pandas as pd
import pytest
import tensorflow_model_analysis as tfma
from apache_beam.runners.portability.fn_api_runner import fn_runner
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from components.evaluator import files, metrics, tfma_files
from components.evaluator.counts import Counts
from components.evaluator.files import BASELINE, CANDIDATE, WHOLE, Results
from components.evaluator.metrics import ACCURACY, AUC
from components.evaluator.thresholds import Evaluation
from preprocessing.labels import SENTIMENT

pytestmark = pytest.mark.both_stacks

# 0.1 is no float32: above it are only the predictions that are above it as float64 too.
EDGES = [0.0, 1.0, 0.5, 0.25, *np.float32([0.1, 1e-7, 0.0001, 0.0002, 0.9999, 0.99999994]).tolist()]
PAIRS = st.lists(
    st.tuples(st.integers(0, 1), st.floats(0, 1, width=32) | st.sampled_from(EDGES)), min_size=1
)


def counts(pairs):
    labels, predictions = zip(*pairs, strict=True) if pairs else ((), ())
    return Counts.from_predictions(
        np.array(labels, np.int64), np.array(predictions, np.float64), SENTIMENT
    )


def results(own, base=None, slices=None, **thresholds):
    """Return results on all reviews, and on slices of the candidate."""
    models = {CANDIDATE: own} | ({BASELINE: base} if base else {})
    of_slices = {of_slice: {CANDIDATE: each} for of_slice, each in (slices or {}).items()}
    return Results(SENTIMENT, Evaluation(**thresholds), {WHOLE: models, **of_slices})


def written(folder, found):
    """Write the files of an evaluation as the Evaluator does; return the results that are read."""
    files.write(str(folder), found)
    tfma_files.write(str(folder), found, dict.fromkeys(found.slices[WHOLE], "/model"))
    return files.read(str(folder))


def of_accuracy(right, examples=1000):
    """Return the counts of a model with this number of right answers."""
    return counts([(1, 0.9)] * right + [(1, 0.1)] * (examples - right))


def random_reviews():
    """Return reviews of slices from one to some hundred reviews, some of one label only."""
    size, slices = 2000, 60
    chance = np.random.default_rng(0)
    near = chance.integers(0, 10_001, size) / 10_000 + chance.choice([-1e-9, 0, 1e-9], size)
    kinds = [chance.random(size), chance.choice(EDGES, size), np.clip(near, 0, 1)]
    predictions = np.choose(chance.integers(0, 3, size), kinds).astype(np.float32)
    names = [f"slice {int(number)}" for number in slices * chance.random(size) ** 3]
    positive = np.array([{"1": 1.0, "2": 0.0}.get(name[-1], 0.6) for name in names])
    return pd.DataFrame(
        {
            "label": (chance.random(size) < positive).astype(np.int64),
            "probability": predictions.astype(np.float64),
            "length_bucket": names,
        }
    )


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    """The folders of the evaluations of the same reviews by TFMA and by us."""
    reviews = random_reviews()
    # The minimum is reached exactly, up to the last bit of a float.
    accuracy = ((reviews["probability"] > 0.5) == reviews["label"]).mean()
    settings = Evaluation(min_accuracy=accuracy, min_class_recall=0.3)
    config = tfma_files.eval_config(SENTIMENT, settings.slices, has_baseline=False)
    # TFMA calls no model here.
    config.model_specs[0].ClearField("preprocessing_function_names")
    config.model_specs[0].ClearField("signature_name")
    theirs, ours = (str(tmp_path_factory.mktemp(name)) for name in ("theirs", "ours"))
    with pytest.MonkeyPatch.context() as patch:
        pipeline = beam.Pipeline
        patch.setattr(beam, "Pipeline", lambda: pipeline(runner=fn_runner.FnApiRunner()))
        tfma.analyze_raw_data(reviews, config, output_path=theirs)
    found = {
        ("length_bucket", name) if name else WHOLE: {
            CANDIDATE: Counts.from_predictions(
                part["label"].to_numpy(), part["probability"].to_numpy(), SENTIMENT
            )
        }
        for name, part in [("", reviews), *reviews.groupby("length_bucket")]
    }
    written(ours, Results(SENTIMENT, settings, found))
    return theirs, ours


def double_values(folder):
    return {
        (str(of_slice.slice_key), item.key.model_name, item.key.name, item.key.is_diff): (
            item.value.double_value.value
        )
        for of_slice in tfma.load_metrics(folder)
        for item in of_slice.metric_keys_and_values
        if item.value.HasField("double_value")
    }


@pytest.mark.slow
def test_all_metrics_of_all_slices_are_those_of_tfma(oracle):
    theirs, ours = oracle
    wanted, found = double_values(theirs), double_values(ours)
    assert len(found) > 50 * len(metrics.metrics(SENTIMENT))
    assert wanted.keys() == found.keys()
    for key, value in wanted.items():
        if key[2] == "auc" and math.isnan(found[key]):
            # The AUC of reviews of one label is not defined. TFMA returns 0.
            assert value == 0, key
        else:
            assert found[key] == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True), key
    assert [check.passed for check in files.read(ours).checks()] == [True, True, True]
    [result] = tfma.load_eval_results(ours).get_results()
    assert result.model_location == "/model"


def test_functions_of_tfma_find_the_candidate_beside_a_baseline(tmp_path):
    found = written(tmp_path, results(of_accuracy(900), of_accuracy(800)))
    for name, accuracy in ((CANDIDATE, 0.9), (BASELINE, 0.8)):
        [(_, values)] = tfma.load_eval_result(str(tmp_path), model_name=name).slicing_metrics
        assert values[""][""][ACCURACY.name] == {"doubleValue": accuracy}
        assert ACCURACY.value(found.slices[WHOLE][name]) == accuracy
    [(_, values)] = tfma.load_eval_result(str(tmp_path)).slicing_metrics
    assert values[""][""][f"{ACCURACY.name}_diff"]["doubleValue"] == pytest.approx(0.1)


@given(PAIRS, st.lists(st.integers(0, 2)))
def test_counts_of_parts_add_up_and_are_stored_exactly(pairs, parts):
    whole = counts(pairs)
    numbers = [*parts, *[0] * len(pairs)]
    divided = [
        counts([pair for pair, number in zip(pairs, numbers, strict=False) if number == part])
        for part in (0, 1, 2)
    ]
    added = divided[0] + divided[1] + divided[2]
    stored = Counts.from_json(json.loads(json.dumps(whole.to_json())), SENTIMENT)
    for found in (added, stored):
        assert (found.histogram != whole.histogram).nnz == 0
        assert found.confusion.tolist() == whole.confusion.tolist()
    assert added.total == pytest.approx(whole.total)
    assert stored.total == whole.total


@given(PAIRS.filter(lambda pairs: len({label for label, _ in pairs}) == 2))
def test_the_curve_and_its_area(pairs):
    pairs = [(label, round(value, 3)) for label, value in pairs]
    found = counts(pairs)
    labels, scores = zip(*pairs, strict=True)
    assert AUC.value(found) == pytest.approx(roc_auc_score(labels, scores))
    thresholds, *rates, _ = np.array(list(found.curve())).T
    assert (np.diff(thresholds) <= 0).all()
    for rate in rates:
        assert (rate[0], rate[-1]) == (0, 1)
        assert (np.diff(rate) >= 0).all()


def test_the_tenths_with_reviews():
    found = list(counts([(0, 0.05), (1, 0.05), (1, 0.3499), (0, 0.35), (1, 1.0)]).tenths())
    assert [round(tenth.mean, 3) for tenth in found] == [0.05, 0.35, 1.0]
    numbers = [(tenth.lower, tenth.negative, tenth.positive) for tenth in found]
    assert numbers == [(0.0, 1, 1), (0.3, 1, 1), (0.9, 0, 1)]


@pytest.mark.parametrize("prediction", [math.nan, 1.5])
def test_a_prediction_that_is_no_probability_is_refused(prediction):
    with pytest.raises(ValueError, match="not a probability"):
        counts([(0, 0.5), (1, prediction)])


def test_counts_do_not_grow_with_the_reviews():
    """Flink ends a job with a record that is larger than its sort buffer, 89 MB by default."""
    chance = np.random.default_rng(0)
    one, *others = (
        Counts.from_predictions(chance.integers(0, 2, 1 << 16), chance.random(1 << 16), SENTIMENT)
        for _ in range(20)
    )
    total = sum(others, one)
    assert len(pickle.dumps(total)) <= len(pickle.dumps(one)) * 1.1 < 1 << 19
    assert 200 <= len(list(total.curve())) < 420


@pytest.mark.parametrize(
    ("own", "base", "passed"),
    [
        (800, None, [True]),  # exactly the minimum
        (799, None, [False]),
        (895, 900, [True, True]),
        (890, 900, [True, True]),  # exactly the allowed drop
        (880, 900, [True, False]),  # a model that is worse than the baseline
        (790, 700, [False, True]),  # better than the baseline, and too bad
    ],
)
def test_a_model_is_blessed_if_it_reaches_every_threshold(tmp_path, own, base, passed):
    compared = results(
        of_accuracy(own),
        base and of_accuracy(base),
        # A slice decides nothing.
        {} if base else {("length_bucket", "1-19"): of_accuracy(0, 1)},
        min_class_recall=0.0,
    )
    found = written(tmp_path, compared).checks()
    assert [check.passed for check in found] == passed
    assert found[0].sentence == (
        f"accuracy is {own / 1000:.4f}, evaluation.min_accuracy requires 0.8"
    )
    if base:
        assert found[1].sentence == (
            f"accuracy is {abs(own - base) / 1000:.4f} {'below' if own < base else 'above'} that "
            "of the baseline, evaluation.max_accuracy_drop allows 0.01"
        )


@pytest.mark.parametrize("right", [94_996, 94_999, 95_000, 95_004])
def test_a_value_in_a_sentence_is_on_its_side_of_the_threshold(right):
    model = counts([(0, 0.1)] * right + [(0, 0.9)] * (100_000 - right) + [(1, 0.9)])
    base = counts([(0, 0.1)] * 96_001 + [(0, 0.9)] * 3_999 + [(1, 0.9)])
    named = {"negative": 0.95}
    checks = results(model, base, min_accuracy=right / 1e5, min_class_recall=named).checks()
    for check, limit in zip(checks, (right / 1e5, -0.01, 0.95), strict=True):
        shown = float(re.search(r"\d\.\d+", check.sentence)[0])
        assert ((-shown if limit < 0 else shown) >= limit) == check.passed, check.sentence


def test_a_model_that_knows_one_class_is_not_blessed():
    # Of 92 negative and 3255 positive reviews it finds 21 and 3252.
    pairs = [(0, 0.1)] * 21 + [(0, 0.9)] * 71 + [(1, 0.9)] * 3252 + [(1, 0.1)] * 3
    model = counts(pairs)
    negative, positive = results(model, min_accuracy=0.0).checks()
    assert (negative.passed, positive.passed) == (False, True)
    assert negative.sentence.startswith(
        "recall of negative reviews is 0.2283 (21 of 92), evaluation.min_class_recall requires "
        "0.4; set training.class_weights: balanced (unless it "
    )
    assert (
        metrics.constant_answer(model, SENTIMENT) == "always answering positive would give 0.9725"
    )
    none = {"min_accuracy": 0.0, "min_class_recall": 0.0, "max_accuracy_drop": 1.0}
    assert results(model, model, **none).checks() == []


def test_intervals_and_metrics_that_are_not_defined():
    found = counts([(0, 0.1)])
    undefined = {
        metric.name for metric in metrics.metrics(SENTIMENT) if math.isnan(metric.value(found))
    }
    assert undefined == {"auc", "precision", "recall", "calibration"}
    assert [
        metric.interval(found) for metric in metrics.metrics(SENTIMENT) if metric.name in undefined
    ] == [None] * 4
    assert ACCURACY.value(found) == 1.0
    # A value that is not defined reaches no threshold.
    checks = results(found, min_class_recall=0.5).checks()
    assert [check.passed for check in checks] == [True, True, False]
    assert checks[-1].sentence.startswith(
        "recall was not checked for class positive: the test split has no such reviews, eval"
    )
    # Newcombe, "Two-sided confidence intervals for the single proportion" (1998): 81 of 263.
    low, high = metrics.wilson(81, 263)
    assert (low, high) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, abs=1e-4))


@pytest.mark.parametrize(
    ("negatives", "positives", "clause"),
    [
        (3, 1, "always answering negative would give 0.7500"),
        (1, 3, "always answering positive would give 0.7500"),
        (2, 2, "always answering positive would give 0.5000"),
        (4, 0, "always answering negative would give 1.0000"),
    ],
)
def test_the_constant_answer_is_that_of_the_majority(negatives, positives, clause):
    # The model answers the opposite of the labels, which makes no difference.
    own = counts([(0, 0.9)] * negatives + [(1, 0.1)] * positives)
    assert metrics.constant_answer(own, SENTIMENT) == clause
