"""The Evaluator in batches writes what TFX's own Evaluator writes, and falls back to it."""

import json
import re
from pathlib import Path

import pytest
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.proto import config_pb2
from tfx.components.evaluator import executor as tfx_executor
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts
from tfx.utils import proto_utils

from components.evaluator import sampled, scoring, stages
from components.evaluator.executor import Executor
from components.evaluator.metrics import metrics_by_model
from components.run_report.evaluation import missed_thresholds, read_evaluation
from pipeline.config import PipelineConfig
from pipeline.evaluation import eval_config
from tests.components.evaluated import write_examples, write_ngram_model, write_other_model

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]

MORE_METRICS = (
    ("WeightedExampleCount", ""),
    ("MeanLabel", ""),
    ("MeanPrediction", ""),
    ("AUC", '"name": "pr", "curve": "PR"'),
    ("AUC", '"name": "coarse", "num_thresholds": 9'),
    ("BinaryAccuracy", '"name": "low", "threshold": 0.3'),
    ("F1Score", ""),
    ("SpecificityAtSensitivity", '"sensitivity": 0.5'),
    ("CalibrationPlot", ""),
    ("ConfusionMatrixPlot", '"num_thresholds": 7'),
)
MORE_SLICES = (
    {"feature_keys": ["stars"]},
    {"feature_keys": ["stars", "length_bucket"]},
    {"feature_values": {"stars": "3"}, "feature_keys": ["length_bucket"]},
    {"feature_keys": ["absent"]},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("evaluator")


@pytest.fixture(scope="module")
def examples(folder):
    return write_examples(folder / "examples", 240)


@pytest.fixture(scope="module")
def ngram_models(folder):
    return [write_ngram_model(folder / f"model-{seed}", seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def other_model(folder):
    return write_other_model(folder / "other")


def config(more=True):
    found = eval_config(PipelineConfig())
    if more:
        found.slicing_specs.extend([config_pb2.SlicingSpec(**spec) for spec in MORE_SLICES])
        found.metrics_specs[0].metrics.extend(
            [config_pb2.MetricConfig(class_name=name, config=text) for name, text in MORE_METRICS]
        )
    return found


def evaluate(folder, examples, models, settings, *, batched, min_accuracy=0.1, beam_args=()):
    """Run the component's executor; return its outputs, evaluation and blessing."""
    evaluation, blessing = standard_artifacts.ModelEvaluation(), standard_artifacts.ModelBlessing()
    evaluation.uri, blessing.uri = str(folder / "evaluation"), str(folder / "blessing")
    inputs = {"examples": [examples], "model": models[:1], "baseline_model": models[1:]}
    Executor(BaseBeamExecutor.Context(beam_pipeline_args=list(beam_args))).Do(
        {name: artifacts for name, artifacts in inputs.items() if artifacts},
        {"evaluation": [evaluation], "blessing": [blessing]},
        {
            "eval_config": proto_utils.proto_to_json(settings),
            "example_splits": '["test"]',
            "fairness_indicator_thresholds": "null",
            "min_accuracy": min_accuracy,
            "batched": int(batched),
            "current_component_id": "Evaluator",
        },
    )
    return evaluation, blessing


def content(evaluation, blessing):
    """Return all that the artifacts contain, in one order."""
    folder = Path(evaluation.uri)
    written = {
        "metrics": [json_format.MessageToDict(item) for item in tfma.load_metrics(str(folder))],
        "plots": [json_format.MessageToDict(item) for item in tfma.load_plots(str(folder))],
    }
    for items in written.values():
        for item in items:
            for values in item.values():
                if isinstance(values, list):
                    values.sort(key=lambda value: json.dumps(value.get("key"), sort_keys=True))
        items.sort(key=lambda item: json.dumps(item.get("sliceKey"), sort_keys=True))
    validation = json_format.MessageToDict(tfma.load_validation_result(str(folder)))
    for key in ("metricValidationsPerSlice",):
        validation.get(key, []).sort(key=lambda item: json.dumps(item, sort_keys=True))
    properties = {
        name: json_format.MessageToDict(value)
        for name, value in blessing.mlmd_artifact.custom_properties.items()
    }
    files = {re.sub(r"-\d+-of-\d+", "", path.name) for path in folder.iterdir()}
    return {
        **written,
        "validation": validation,
        "config": json.loads((folder / "eval_config.json").read_text()),
        # Beam determines the number of shards of each file. TFX's executor has no sample.
        "files": files - {sampled.FILE},
        "blessing": sorted(path.name for path in Path(blessing.uri).iterdir()),
        "properties": properties,
    }


def assert_same(found, wanted, place=""):
    """Fail with the place of a difference.

    TensorFlow's sigmoid depends in the last bit of a float32 on the size of the batch.
    """
    assert type(found) is type(wanted), place
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), place
        for key, value in wanted.items():
            assert_same(found[key], value, f"{place}/{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), place
        for number, value in enumerate(wanted):
            assert_same(found[number], value, f"{place}/{number}")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-12, nan_ok=True), place
    else:
        assert found == wanted, place


def assert_report_has_thresholds(evaluation, min_accuracy):
    """Fail unless the report has every threshold of the accuracy next to the value."""
    [overall] = [
        metrics_by_model(of_slice)
        for of_slice in tfma.load_metrics(evaluation)
        if not of_slice.slice_key.single_slice_keys
    ]
    accuracy = overall["candidate"]["binary_accuracy"]
    wanted = [
        (
            f"binary_accuracy is {accuracy:.4f}, evaluation.min_accuracy requires {min_accuracy}",
            accuracy >= min_accuracy,
        )
    ]
    if "baseline" in overall:
        change = accuracy - overall["baseline"]["binary_accuracy"]
        wanted.append(
            (
                f"binary_accuracy is {abs(change):.4f} {'below' if change < 0 else 'above'} that "
                "of the baseline, evaluation.max_accuracy_drop allows 0.01",
                change >= -0.01,
            )
        )
    assert read_evaluation(evaluation, None).thresholds == wanted
    assert missed_thresholds(evaluation) == [sentence for sentence, passed in wanted if not passed]


def test_metrics_slices_plots_and_validations_with_a_baseline(
    folder, examples, ngram_models, other_model, log
):
    """The two models have other length buckets, so a review may be in the slices of both."""
    models = [ngram_models[0], other_model]
    wanted = evaluate(folder / "stock", examples, models, config(), batched=False)
    found = evaluate(folder / "batched", examples, models, config(), batched=True)
    assert "TFX's own executor evaluates" not in log.text
    assert "transform_features returns other values than NumPy" in log.text
    assert_same(content(*found), content(*wanted))
    names = {
        item.key.name
        for of_slice in tfma.load_metrics(found[0].uri)
        for item in of_slice.metric_keys_and_values
    }
    assert {"auc", "pr", "coarse", "calibration", "f1_score", "binary_accuracy"} <= names
    assert len(list(tfma.load_metrics(found[0].uri))) > 15
    assert_report_has_thresholds(found[0].uri, 0.1)


@pytest.mark.parametrize("min_accuracy", [0.1, 0.99])
def test_the_blessing_without_a_baseline(
    folder, examples, ngram_models, min_accuracy, monkeypatch, log
):
    # Several sums for each slice, several parts of each batch.
    monkeypatch.setattr(stages, "_REVIEWS_AT_ONCE", 50)
    monkeypatch.setattr(stages, "_BYTES_AT_ONCE", 10_000)
    arguments = (examples, ngram_models[:1], config(more=False))
    done = {
        batched: evaluate(
            folder / f"{batched}-{min_accuracy}",
            *arguments,
            batched=batched,
            min_accuracy=min_accuracy,
        )
        for batched in (False, True)
    }
    assert_same(content(*done[True]), content(*done[False]))
    name = "BLESSED" if min_accuracy < 0.5 else "NOT_BLESSED"
    assert content(*done[True])["blessing"] == [name]
    assert_report_has_thresholds(done[True][0].uri, min_accuracy)
    assert "returns other values" not in log.text


def test_other_processes_compute_the_same(folder, examples, ngram_models):
    found = [
        evaluate(
            folder / f"processes-{number}",
            examples,
            ngram_models,
            config(more=False),
            batched=True,
            beam_args=args,
        )
        for number, args in enumerate(
            ([], ["--direct_running_mode=multi_processing", "--direct_num_workers=2"])
        )
    ]
    alone, together = (content(*outputs) for outputs in found)
    # Two workers write two files of each kind, as with TFX's own executor.
    assert len(together.pop("files")) >= len(alone.pop("files"))
    assert_same(together, alone)


def test_all_models_are_read_through_ngrams_that_are_computed_once(ngram_models, monkeypatch):
    calls = []
    original = scoring.ngram_ids
    models = scoring.Models(
        [
            scoring.EvaluatedModel(
                name,
                f"{model.uri}/Format-Serving",
                "serving_default",
                "probability",
                {"transform_features": ["length_bucket"]},
                frozenset({"predict_text", "predict_ngrams"}),
            )
            for name, model in zip("ab", ngram_models, strict=True)
        ]
    )
    texts = [b"good phone", b""]
    examples = scoring.encode_examples({"text": texts, "label": [0, 1]})
    models.score(examples, texts)
    monkeypatch.setattr(scoring, "ngram_ids", lambda *args: calls.append(args) or original(*args))
    scored = models.score(examples, texts)
    assert calls == [(texts, 2, 64, (2, 3))]
    assert (scored["a"].predictions != scored["b"].predictions).all()


def with_intervals(settings):
    settings.options.compute_confidence_intervals.value = True


def with_another_metric(settings):
    settings.metrics_specs[0].metrics.add(class_name="BinaryCrossentropy")


def with_cross_slices(settings):
    settings.cross_slicing_specs.add(baseline_spec=config_pb2.SlicingSpec())


def with_another_signature(settings):
    settings.model_specs[0].signature_name = "predict_text"


def with_another_output(settings):
    settings.model_specs[0].prediction_key = "label"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_intervals, "options"),
        (with_another_metric, "the metric binary_crossentropy cannot be computed from sums"),
        (with_cross_slices, "cross slices"),
        (with_another_signature, "no signature 'predict_text' for serialized Examples"),
        (with_another_output, "does not predict one number 'label'"),
    ],
)
def test_what_is_not_supported_is_computed_by_the_executor_of_tfx(
    tmp_path, examples, ngram_models, change, reason, monkeypatch, log
):
    done = []
    monkeypatch.setattr(tfx_executor.Executor, "Do", lambda *arguments: done.append(arguments))
    settings = config(more=False)
    change(settings)
    evaluate(tmp_path, examples, ngram_models[:1], settings, batched=True)
    assert len(done) == 1
    assert "TFX's own executor evaluates, which takes longer: " in log.text
    assert reason in log.text


def test_a_setting_selects_the_executor_of_tfx(tmp_path, examples, ngram_models, monkeypatch, log):
    done = []
    monkeypatch.setattr(tfx_executor.Executor, "Do", lambda *arguments: done.append(arguments))
    evaluate(tmp_path, examples, ngram_models[:1], config(more=False), batched=False)
    assert len(done) == 1
    assert "TFX's own executor" not in log.text
