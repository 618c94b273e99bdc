"""Which runner a Beam pipeline gets."""

import apache_beam as beam
import pytest
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.prism_runner import PrismRunner
from apache_beam.testing.util import assert_that, equal_to
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec

from components.local_beam import LocalBeamExecutor, make_pipeline
from components.review_example_gen.executor import Executor
from pipeline.config import PipelineConfig
from pipeline.pipeline import create_pipeline

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "named",
    [
        [],
        ["--runner=DirectRunner"],
        ["--runner=direct"],
        ["--runner=apache_beam.runners.direct.direct_runner.SwitchingDirectRunner"],
    ],
)
def test_pipelines_run_in_this_process(named):
    assert isinstance(make_pipeline(named).runner, FnApiRunner)


@pytest.mark.parametrize(
    ("named", "runner"), [("FlinkRunner", FlinkRunner), ("PrismRunner", PrismRunner)]
)
def test_a_runner_that_the_arguments_name_wins(named, runner):
    assert type(make_pipeline([f"--runner={named}"]).runner) is runner


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading", "multi_processing"])
def test_the_running_mode_still_counts(mode):
    args = [f"--direct_running_mode={mode}", "--direct_num_workers=2"]
    with make_pipeline(args) as pipeline:
        assert_that(pipeline | beam.Create([1, 2]) | beam.Map(lambda n: n + 1), equal_to([2, 3]))


def test_an_executor_without_arguments_gets_that_runner():
    executor = Executor(BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=""))
    assert isinstance(executor._make_beam_pipeline().runner, FnApiRunner)


def test_every_beam_component_of_the_pipeline_is_one_of_ours(tmp_path):
    config = PipelineConfig.model_validate({"paths": {"root": str(tmp_path)}})
    specs = [component.executor_spec for component in create_pipeline(config).components]
    on_beam = [spec.executor_class for spec in specs if isinstance(spec, BeamExecutorSpec)]
    assert len(on_beam) >= 4
    assert [executor for executor in on_beam if not issubclass(executor, LocalBeamExecutor)] == []
