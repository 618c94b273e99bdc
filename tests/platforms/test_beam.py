"""The settings under `beam`, as the arguments that Beam gets."""

from unittest.mock import Mock

import pytest

from pipeline.config import PipelineConfig
from platforms.beam import beam_args, set_beam_args

VERTEX = {"project": "p", "region": "r"}


def config(beam, **sections):
    return PipelineConfig.model_validate({"beam": beam, "vertex": VERTEX, **sections})


def args_of(component_id, found, in_image=True):
    component = Mock(id=component_id)
    set_beam_args(found, component, in_image=in_image)
    calls = component.with_beam_pipeline_args.call_args_list
    return calls[0].args[0] if calls else []


def test_a_component_gets_the_arguments_of_the_settings_and_by_default_none():
    args = ["--direct_running_mode=multi_processing", "--direct_num_workers=5"]
    assert beam_args(config({})) == args_of("Transform", config({})) == []
    assert args_of("Transform", config({"args": args})) == args
    # A component without a Beam pipeline has no such method.
    set_beam_args(config({"args": args}), Mock(spec=["id"]), in_image=True)


@pytest.mark.parametrize("component", ["ReviewExampleGen", "StatisticsGen", "Transform"])
def test_the_arguments_of_dataflow_are_those_of_vertex_and_of_the_root(component):
    beam = {"runner": "dataflow", "args": ["--max_num_workers=7", "--region=other"]}
    found = config(beam, paths={"root": "gs://bucket/root/"})
    assert args_of(component, found) == [
        "--runner=DataflowRunner",
        "--project=p",
        "--region=r",
        "--temp_location=gs://bucket/root/tmp",
        "--setup_file=/opt/amazon-reviews/setup.py",
        # Beam uses the last value of an argument.
        "--max_num_workers=7",
        "--region=other",
    ]
    [setup_file] = [arg for arg in args_of(component, found, False) if "setup_file" in arg]
    assert setup_file.startswith("--setup_file=/") and setup_file.endswith("/setup.py")
    assert args_of("Evaluator", found) == beam["args"]
