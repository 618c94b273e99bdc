"""The environment of Beam's Python workers on Flink."""

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.flink.runner import FlinkRunner
from pipeline.beam import beam_args
from pipeline.config import PipelineConfig


@pytest.mark.parametrize("environment", ["LOOPBACK", "EXTERNAL", "PROCESS"])
def test_nothing_is_staged(environment):
    flink = {"environment": environment}
    config = PipelineConfig.model_validate({"beam": {"runner": "flink", "flink": flink}})
    runner = FlinkRunner()
    found = runner.default_environment(PipelineOptions(beam_args(config))).to_runner_api(None)
    runner.stop_workers()
    assert list(found.dependencies) == []
