"""What the workers of a job on Flink get: no files, and time between two stages."""

import pytest
from apache_beam.options.pipeline_options import PortableOptions
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

from components.review_example_gen.executor import Executor
from core.flink.runner import FlinkRunner
from pipeline.config import PipelineConfig
from platforms.beam import beam_args

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("environment", ["LOOPBACK", "EXTERNAL", "PROCESS"])
def test_nothing_is_staged_and_workers_remain(environment, tmp_path):
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
    # The workers remain between two stages of a job.
    assert pipeline.options.view_as(PortableOptions).environment_cache_millis > 0
