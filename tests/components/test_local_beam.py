"""The runner of a Beam pipeline."""

import os

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec

from components.beam import LocalBeamExecutor
from components.review_example_gen.executor import Executor
from core.local_beam import make_pipeline
from pipeline.config import PipelineConfig
from pipeline.pipeline import create_pipeline
from platforms.local.platform import Local

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("named", "runner"),
    [(None, FnApiRunner), ("DirectRunner", FnApiRunner), ("FlinkRunner", FlinkRunner)],
)
def test_pipelines_run_in_this_process_unless_the_arguments_name_another_runner(named, runner):
    assert isinstance(make_pipeline([f"--runner={named}"] if named else []).runner, runner)


@pytest.mark.parametrize("mode", ["in_memory", "multi_processing"])
def test_the_running_mode_is_applied(mode):
    here = os.getpid()
    with make_pipeline(arguments_of(mode)) as pipeline:
        found = pipeline | beam.Create([1, 2]) | beam.Map(lambda n: (n + 1, os.getpid() == here))
        is_here = mode != "multi_processing"
        assert_that(found, equal_to([(2, is_here), (3, is_here)]))
    assert direct_options(pipeline) == (mode, 2)


def arguments_of(mode):
    return [f"--direct_running_mode={mode}", "--direct_num_workers=2"]


def direct_options(pipeline):
    options = pipeline.options.view_as(DirectOptions)
    return options.direct_running_mode, options.direct_num_workers


def test_every_beam_component_of_the_pipeline_is_ours_and_gets_the_settings(tmp_path):
    args = [*arguments_of("multi_threading"), "--direct_num_workers=3"]
    config = PipelineConfig.model_validate(
        {"paths": {"root": str(tmp_path)}, "beam": {"args": args}}
    )
    components = create_pipeline(config, Local(config)).components
    specs = {component.id: component.executor_spec for component in components}
    on_beam = {name: spec for name, spec in specs.items() if isinstance(spec, BeamExecutorSpec)}
    assert len(on_beam) >= 4
    assert all(issubclass(spec.executor_class, LocalBeamExecutor) for spec in on_beam.values())
    given = {name: spec.beam_pipeline_args for name, spec in on_beam.items()}
    assert given == dict.fromkeys(given, args)
    executor = Executor(BaseBeamExecutor.Context(beam_pipeline_args=args, tmp_dir=""))
    assert direct_options(executor._make_beam_pipeline())[0] == "multi_threading"
