"""The settings under `beam`, as the arguments that Beam gets."""

import pytest

from pipeline.beam import beam_args, component_beam_args
from pipeline.config import PipelineConfig


def config(beam, **sections):
    return PipelineConfig.model_validate({"beam": beam, **sections})


@pytest.mark.parametrize(
    ("beam", "args"),
    [
        ({}, []),
        (
            {"direct_running_mode": "multi_threading", "direct_num_workers": 3},
            ["--direct_running_mode=multi_threading", "--direct_num_workers=3"],
        ),
        (
            {"direct_running_mode": "multi_processing", "args": ["--direct_num_workers=5", "--x"]},
            [
                "--direct_running_mode=multi_processing",
                "--direct_num_workers=1",
                # Beam uses the last value of an argument.
                "--direct_num_workers=5",
                "--x",
            ],
        ),
    ],
)
def test_every_component_gets_the_arguments(beam, args):
    assert beam_args(config(beam)) == args


DATAFLOW = {
    "project": "p",
    "region": "r",
    "temp_location": "gs://bucket/tmp",
    "service_account": "me@x",
    "machine_type": "n2-standard-4",
    "max_workers": 7,
}


def test_a_component_on_dataflow_gets_every_setting():
    found = config({"runner": "dataflow", "dataflow": {**DATAFLOW, "components": ["Transform"]}})
    *args, setup_file = component_beam_args(found, "Transform", in_image=False)
    assert args == [
        "--runner=DataflowRunner",
        "--project=p",
        "--region=r",
        "--temp_location=gs://bucket/tmp",
        "--service_account_email=me@x",
        "--worker_machine_type=n2-standard-4",
        "--max_num_workers=7",
    ]
    assert setup_file.startswith("--setup_file=/") and setup_file.endswith("/setup.py")
    assert component_beam_args(found, "StatisticsGen", in_image=False) == []


def test_the_defaults_of_dataflow_are_those_of_vertex_and_of_the_root():
    vertex = {"project": "p", "region": "r"}
    found = config({"runner": "dataflow"}, vertex=vertex, paths={"root": "gs://bucket/root/"})
    for component in ("ReviewExampleGen", "StatisticsGen", "Transform"):
        assert component_beam_args(found, component, in_image=True) == [
            "--runner=DataflowRunner",
            "--project=p",
            "--region=r",
            "--temp_location=gs://bucket/root/tmp",
            "--setup_file=/opt/amazon-reviews/setup.py",
        ]
    assert component_beam_args(found, "Evaluator", in_image=True) == []


def test_without_dataflow_its_settings_have_no_effect():
    assert component_beam_args(config({"dataflow": DATAFLOW}), "Transform", in_image=False) == []
