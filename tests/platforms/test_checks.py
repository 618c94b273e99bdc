"""What a target needs of the settings is told in one line that names the key."""

import pytest

from core.errors import ConfigError
from pipeline.config import load_config
from platforms.targets import check_target
from tests.platforms.settings import REQUIRED, settings


@pytest.mark.parametrize("target", ["vertex", "kubeflow"])
def test_what_is_required_is_enough(target):
    check_target(settings(target), target)


def test_the_local_engine_needs_nothing():
    check_target(load_config("sample", environ={}), "local")


def test_kubeflow_takes_the_sample_and_a_volume():
    volume = "kubeflow.volume={claim: c, mount: /data},paths.serving=/data/serving"
    more = f"cluster.image=i,paths.root=gs://bucket/root,{volume}"
    check_target(load_config("sample", environ={"PIPELINE_SET": more}), "kubeflow")


@pytest.mark.parametrize("target", REQUIRED)
def test_nothing_is_taken_from_a_preset_alone(target):
    with pytest.raises(ConfigError, match=r"^cluster\.image: not set"):
        check_target(load_config("sample", environ={}), target)


@pytest.mark.parametrize(
    ("target", "more", "line"),
    [
        ("vertex", "vertex.project=null", "vertex.project: not set"),
        ("vertex", "vertex.region=null", "vertex.region: not set"),
        ("vertex", "data.input_base=null", "data.input_base: not set"),
        ("vertex", "paths.root=/here", "paths.root: /here is not seen by Vertex AI; set gs://"),
        ("vertex", "paths.serving=/here", "paths.serving: /here"),
        ("vertex", "push.destination=vertex", "vertex.serving_image: not set"),
        (
            "vertex",
            "push.destination=vertex,vertex.serving_image=registry/prediction/tf2-cpu.2-15:latest",
            "vertex.serving_image: registry/prediction/tf2-cpu.2-15:latest is a prebuilt",
        ),
        (
            "vertex",
            "cluster.resources={Trainer: {gpus: 1, gpu_type: nvidia.com/gpu}}",
            "cluster.resources.Trainer.gpu_type: nvidia.com/gpu is no accelerator of Vertex AI",
        ),
        ("vertex", "evaluation.baseline_model=gs://b/m", "evaluation.baseline_model is for"),
        ("vertex", "name=" + "x" * 200, "name: "),
        ("kubeflow", "paths.root=/here", "paths.root: /here is no bucket; set gs://"),
        ("kubeflow", "paths.checkpoints=/here", "paths.checkpoints: /here is not seen by the pods"),
        ("kubeflow", "data.input_base=/here", "data.input_base: /here"),
        ("kubeflow", "evaluation.baseline_model=/here", "evaluation.baseline_model: /here"),
        ("kubeflow", "push.destination=vertex", "push.destination: vertex is for --target vertex"),
        (
            "kubeflow",
            "kubeflow.volume={claim: c, mount: /data},paths.serving=/database/serving",
            "paths.serving: /database/serving",
        ),
        (
            "kubeflow",
            "cluster.resources={Trainer: {gpus: 2}},training.devices=4",
            "training.devices: 4 asked for, 2 GPUs are there (cluster.resources.Trainer.gpus is 2",
        ),
        (
            "vertex",
            "cluster.resources={Trainer: {gpus: 2}},training.jit_compile=true",
            "training.jit_compile: true compiles the step of a single device, not of mirrored (",
        ),
        ("kubeflow", "beam.runner=dataflow", "beam.dataflow.project: not set"),
        ("kubeflow", "beam={runner: dataflow, dataflow: {project: p}}", "beam.dataflow.region"),
    ],
)
def test_what_does_not_fit_is_named(target, more, line):
    with pytest.raises(ConfigError) as error:
        check_target(settings(target, more=more), target)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("data.splits={train: a}", "data.input_base: not set, and data.splits needs it"),
        ("push.destination=vertex", "push.destination: vertex is for --target vertex"),
        ("evaluation.baseline_model=/m", "evaluation.baseline_model is for --target kubeflow"),
        (
            "beam={runner: dataflow, dataflow: {project: p, region: r}}",
            "paths.root: ",
        ),
    ],
)
def test_what_only_clusters_have_is_refused_on_this_machine(more, line):
    with pytest.raises(ConfigError) as error:
        check_target(load_config("sample", environ={"PIPELINE_SET": more}), "local")
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("cluster.resources={Trainr: {cpu: 1}}", "unknown component Trainr"),
        ("cluster.resources={Trainer: {memory: 16GB}}", "cluster.resources.Trainer.memory"),
        ("kubeflow.volume={claim: c, mount: data}", "kubeflow.volume.mount"),
        ("kubeflow.training_timeout_hours=0.0", "kubeflow.training_timeout_hours"),
        ("vertex.training_timeout_hours=0.0", "vertex.training_timeout_hours"),
    ],
)
def test_wrong_values_are_refused_when_loading(more, line):
    with pytest.raises(ConfigError, match=line):
        load_config("sample", environ={"PIPELINE_SET": more})
