"""The runner of a Beam pipeline."""

import os

import apache_beam as beam
import pytest
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec

from components.beam import LocalBeamExecutor
from core.local_beam import make_pipeline
from pipeline.config import PipelineConfig
from pipeline.pipeline import create_pipeline
from platforms.local.platform import Local

pytestmark = pytest.mark.slow

PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


@pytest.mark.parametrize(
    ("named", "runner"),
    [(None, FnApiRunner), ("DirectRunner", FnApiRunner), ("FlinkRunner", FlinkRunner)],
)
def test_pipelines_run_in_this_process_unless_the_arguments_name_another_runner(named, runner):
    assert isinstance(make_pipeline([f"--runner={named}"] if named else []).runner, runner)


@pytest.mark.exhaustive
def test_the_running_mode_is_applied():
    here = os.getpid()
    with make_pipeline(PROCESSES) as pipeline:
        found = pipeline | beam.Create([1, 2]) | beam.Map(lambda n: (n + 1, os.getpid() == here))
        assert_that(found, equal_to([(2, False), (3, False)]))


def test_every_beam_component_of_the_pipeline_is_ours_and_gets_the_settings(tmp_path):
    config = PipelineConfig.model_validate(
        {"paths": {"root": str(tmp_path)}, "beam": {"args": PROCESSES}}
    )
    components = create_pipeline(config, Local(config)).components
    specs = [component.executor_spec for component in components]
    on_beam = [spec for spec in specs if isinstance(spec, BeamExecutorSpec)]
    assert len(on_beam) >= 3
    for spec in on_beam:
        assert issubclass(spec.executor_class, LocalBeamExecutor)
        assert spec.beam_pipeline_args == PROCESSES
