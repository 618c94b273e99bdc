"""The parameters of a run override the settings of the compiled pipeline."""

import json

import pytest
from tfx.utils import json_utils

from components.trainer import with_run_parameters

pytestmark = pytest.mark.slow


def test_epochs_and_strategy_reach_the_training():
    config = {"training": {"epochs": 1, "strategy": "auto", "seed": 7}, "code": "x"}
    given = {"custom_config": json_utils.dumps(config), "epochs": 5, "strategy": "mirrored"}
    changed = with_run_parameters({**given, "run_fn": "f"})
    assert changed["run_fn"] == "f"
    expected = {"epochs": 5, "strategy": "mirrored", "seed": 7}
    assert json.loads(changed["custom_config"]) == {"training": expected, "code": "x"}
