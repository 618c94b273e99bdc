"""The settings under `beam`, as the arguments that Beam gets."""

from unittest.mock import Mock

from pipeline.config import PipelineConfig
from platforms.beam import beam_args, set_beam_args


def config(beam):
    return PipelineConfig.model_validate({"beam": beam})


def args_of(component_id, found):
    component = Mock(id=component_id)
    set_beam_args(found, component)
    calls = component.with_beam_pipeline_args.call_args_list
    return calls[0].args[0] if calls else []


def test_a_component_gets_the_arguments_of_the_settings_and_by_default_none():
    args = ["--direct_running_mode=multi_processing", "--direct_num_workers=5"]
    assert beam_args(config({})) == args_of("Transform", config({})) == []
    assert args_of("Transform", config({"args": args})) == args
    # A component without a Beam pipeline has no such method.
    set_beam_args(config({"args": args}), Mock(spec=["id"]))
