"""The parameters of a run override the settings of the compiled pipeline."""

import json

import pytest
import tensorflow_model_analysis as tfma
from tfx.utils import json_utils, proto_utils

from components.evaluator.executor import with_min_accuracy
from components.trainer import with_run_parameters
from core.errors import InputError
from pipeline.config import load_config
from pipeline.evaluation import eval_config

pytestmark = pytest.mark.slow


def test_epochs_and_strategy_reach_the_training():
    config = {"training": {"epochs": 1, "strategy": "auto", "seed": 7}, "code": "x"}
    given = {"custom_config": json_utils.dumps(config), "epochs": 5, "strategy": "mirrored"}
    changed = with_run_parameters({**given, "run_fn": "f"})
    assert changed["run_fn"] == "f"
    expected = {"epochs": 5, "strategy": "mirrored", "seed": 7}
    assert json.loads(changed["custom_config"]) == {"training": expected, "code": "x"}


def bounds(text):
    config = tfma.EvalConfig()
    proto_utils.json_to_proto(text, config)
    return [
        sliced.threshold.value_threshold.lower_bound.value
        for spec in config.metrics_specs
        for metric in spec.metrics
        for sliced in metric.per_slice_thresholds
    ]


def test_min_accuracy_is_the_lower_bound():
    text = proto_utils.proto_to_json(eval_config(load_config("sample", environ={})))
    assert bounds(text) == [0.85]
    changed = with_min_accuracy({"eval_config": text, "min_accuracy": 0.9})
    assert bounds(changed["eval_config"]) == [0.9]


@pytest.mark.parametrize("wrong", [-0.1, 90.0])
def test_min_accuracy_is_a_fraction(wrong):
    with pytest.raises(InputError, match=rf"parameter min_accuracy: .* equal to [01], not {wrong}"):
        with_min_accuracy({"eval_config": "{}", "min_accuracy": wrong})
