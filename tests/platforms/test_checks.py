"""A setting that a target requires, and that is missing or wrong, is one line with its key."""

import pytest

from core.errors import ConfigError
from pipeline.config import load_config
from platforms.checks import check_target
from tests.platforms.compiled import settings


@pytest.mark.parametrize("target", ["vertex", "kubeflow"])
def test_the_required_settings_are_sufficient(target):
    check_target(settings(target), target)


def test_the_local_engine_requires_no_settings():
    check_target(load_config("sample", environ={}), "local")


def test_kubeflow_supports_the_sample_and_a_volume():
    volume = "kubeflow.volume={claim: c, mount: /data},paths.serving=/data/serving"
    more = f"cluster.image=i,paths.root=gs://bucket/root,{volume}"
    check_target(load_config("sample", environ={"PIPELINE_SET": more}), "kubeflow")


@pytest.mark.parametrize(
    ("target", "more", "line"),
    [
        ("vertex", "vertex.project=null", "vertex.project: not set"),
        ("kubeflow", "cluster.image=null", "cluster.image: not set"),
        ("vertex", "paths.root=/here", "paths.root: /here is not accessible from Vertex AI; set"),
        ("vertex", "push.destination=vertex", "vertex.serving_image: not set"),
        (
            "vertex",
            "cluster.resources={Trainer: {gpus: 1, gpu_type: nvidia.com/gpu}}",
            "cluster.resources.Trainer.gpu_type: nvidia.com/gpu is not an accelerator of Vert",
        ),
        ("vertex", "name=" + "x" * 200, "name: "),
        ("kubeflow", "paths.root=/here", "paths.root: /here is not a bucket; set gs://"),
        ("kubeflow", "paths.checkpoints=/here", "paths.checkpoints: /here is not accessible f"),
        ("kubeflow", "push.destination=vertex", "push.destination: vertex requires --target vert"),
        (
            "kubeflow",
            "kubeflow.volume={claim: c, mount: /data},paths.serving=/database/serving",
            "paths.serving: /database/serving",
        ),
        (
            "kubeflow",
            "cluster.resources={Trainer: {gpus: 2}},training.devices=4",
            "training.devices: 4 devices, but only 2 GPUs are available "
            "(cluster.resources.Trainer.gpus is 2",
        ),
        (
            "vertex",
            "cluster.resources={Trainer: {gpus: 2}},training.jit_compile=true",
            "training.jit_compile: true compiles the step of a single device, not of mirrored (",
        ),
        (
            "kubeflow",
            "kubeflow.training_pod={nodeSelector: {a: b}, toleration: []}",
            "kubeflow.training_pod.toleration: unknown field, did you mean tolerations?",
        ),
        (
            "kubeflow",
            "kubeflow.training_pod={tolerations: [{key: a}, {keys: b}]}",
            "kubeflow.training_pod.tolerations.1.keys: unknown field, did you mean key?",
        ),
    ],
)
def test_the_error_names_the_unsuitable_setting(target, more, line):
    with pytest.raises(ConfigError) as error:
        check_target(settings(target, more=more), target)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("data.splits={train: a}", "data.input_base: not set, and data.splits requires it"),
        ("push.destination=vertex", "push.destination: vertex requires --target vert"),
    ],
)
def test_settings_for_clusters_are_refused_on_this_machine(more, line):
    with pytest.raises(ConfigError) as error:
        check_target(load_config("sample", environ={"PIPELINE_SET": more}), "local")
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("cluster.resources={Trainr: {cpu: 1}}", "unknown component Trainr"),
        ("cluster.resources={Trainer: {memory: 16GB}}", "cluster.resources.Trainer.memory"),
        ("kubeflow.volume={claim: c, mount: data}", "kubeflow.volume.mount"),
        ("kubeflow.volume={claim: c, mount: '/a:b'}", "kubeflow.volume.mount"),
        (f"kubeflow.namespace={'n' * 64}", "kubeflow.namespace"),
        ("kubeflow.service_account=Trainer", "kubeflow.service_account"),
        ("kubeflow.training_pod={containers: []}", "cluster.image and cluster.resources describe"),
        ("kubeflow.experiment=x", "kubeflow.experiment: was removed; the experiment has the name"),
    ],
)
def test_wrong_values_are_refused_when_loading(more, line):
    with pytest.raises(ConfigError, match=line):
        load_config("sample", environ={"PIPELINE_SET": more})
