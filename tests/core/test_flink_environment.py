"""What a job on Flink stages: nothing, because the workers have this package already."""

import pytest
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

from components.review_example_gen.executor import Executor
from core.flink.runner import FlinkRunner
from pipeline.beam import beam_args
from pipeline.config import PipelineConfig

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("environment", ["LOOPBACK", "EXTERNAL", "PROCESS"])
def test_nothing_is_staged(environment, tmp_path):
    flink = {"environment": environment}
    config = PipelineConfig.model_validate(
        {"paths": {"root": str(tmp_path)}, "beam": {"runner": "flink", "flink": flink}}
    )
    context = BaseBeamExecutor.Context(beam_pipeline_args=beam_args(config), tmp_dir="")
    pipeline = Executor(context)._make_beam_pipeline()
    assert isinstance(pipeline.runner, FlinkRunner)
    found = pipeline.runner.default_environment(pipeline.options).to_runner_api(None)
    pipeline.runner.stop_workers()
    assert list(found.dependencies) == []
