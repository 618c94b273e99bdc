"""Combinations of settings: contradictions are refused, all others train."""

import re
from typing import get_args

import pytest
from pydantic import ValidationError

from tests.exhaustive import exhaustive
from tests.trainer_module.conftest import make_job, probabilities, run_task, summary
from trainer_module.cluster import resources
from trainer_module.settings import Training

STRATEGIES = get_args(Training.model_fields["strategy"].annotation)
CLUSTERS = ("multi_worker_mirrored", "parameter_server")
REFUSED = [
    # strategies, further settings, how the line begins
    (("one_device",), {"devices": 2}, "2 devices require training.strategy: mirrored"),
    ((*CLUSTERS, "tpu"), {"devices": 2}, "training.devices: 2, but {} trains on all devices of"),
    (
        ("auto", "one_device", "mirrored", "central_storage", "tpu"),
        {"workers": 2},
        "2 workers require training.strategy: multi_worker_mirrored or parameter_server; {} trains",
    ),
    (
        tuple(strategy for strategy in STRATEGIES if strategy != "parameter_server"),
        {"parameter_servers": 2},
        "training.parameter_servers: 2, but {} has none; set training.strategy: parameter_server",
    ),
    (
        ("mirrored", "central_storage", *CLUSTERS),
        {"jit_compile": True},
        "training.jit_compile: true compiles the step of a single device, not of {}; set",
    ),
    (
        ("central_storage", "parameter_server", "tpu"),
        {"mixed_precision": "float16"},
        "training.mixed_precision: float16 requires a scaled loss, which Keras does not support",
    ),
    (
        STRATEGIES,
        {"warm_start": True, "hyperparameters": {"compressed": True}},
        "training.warm_start: true needs a base model with all bits of its weights; unset",
    ),
    (STRATEGIES, {"profile_steps": (5, 3)}, "training.profile_steps: [5, 3] ends before"),
]


@pytest.mark.parametrize(("refused", "settings", "line"), REFUSED)
def test_exactly_the_listed_strategies_refuse_a_setting(refused, settings, line):
    for strategy in refused:
        with pytest.raises(ValidationError, match=re.escape(line.format(strategy))):
            Training(strategy=strategy, **settings)
    elsewhere = {name for names, other, _ in REFUSED if other == settings for name in names}
    for strategy in STRATEGIES:
        if strategy not in elsewhere:
            Training(strategy=strategy, **settings)


@pytest.mark.parametrize(
    ("settings", "environ", "line"),
    [
        ({"jit_compile": True}, {"CUDA_VISIBLE_DEVICES": "0,1"}, r"jit.* mirrored \(.* 2 GPU"),
        ({"mixed_precision": "float16"}, {"TPU_NAME": "t"}, r"float16.* tpu \(auto: t\); set bfl"),
        ({"devices": 2}, {"TPU_NAME": "t"}, r"training.devices: 2, but tpu \(auto: t\) trains on"),
        ({"devices": 3}, {"CUDA_VISIBLE_DEVICES": "0,1"}, r"devices: 3 devices, but only 2 GPUs"),
        (
            {"strategy": "parameter_server", "workers": 3},
            {"CUDA_VISIBLE_DEVICES": "0,1"},
            "training.workers: 3 workers, but 2 GPUs",
        ),
        ({"strategy": "tpu"}, {}, "there is no TPU"),
        (
            {"strategy": "tpu", "tpu": "local"},
            {},
            r"training.tpu: local, but this machine has no TPU \(/dev/accel0 does not exist\); set",
        ),
        ({"tpu": "local"}, {}, "training.tpu: local, but this machine has no TPU"),
        ({"strategy": "tpu"}, {"TPU_NAME": "local"}, "TPU_NAME: local, but this machine has no"),
    ],
)
def test_missing_devices_are_found_before_a_process_starts(
    gpus, monkeypatch, settings, environ, line
):
    # Other hardware of this machine may have such files.
    monkeypatch.setattr(resources, "_VFIO_FILES", "/dev/missing")
    with pytest.raises(ValueError, match=line) as error:
        resources.check_devices(Training(**settings), {"CUDA_VISIBLE_DEVICES": "", **environ})
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("2.16.2", None),
        ("2.20.0", None),
        ("2.21.0", "TensorFlow 2.21 cannot use a TPU, because tensorflow-tpu ends at 2.20; use "),
        ("3.0.1", "TensorFlow 3.0 cannot use a TPU"),
    ],
)
def test_a_tensorflow_without_a_build_for_tpus_is_named(gpus, monkeypatch, version, remedy):
    monkeypatch.setattr(resources.metadata, "version", {"tensorflow": version}.__getitem__)
    unreachable = resources.no_tpu_message("no TPU is reachable at 'x'")
    with pytest.raises(ValueError) as error:
        resources.check_devices(Training(strategy="tpu"), {"CUDA_VISIBLE_DEVICES": ""})
    for message in (str(error.value), unreachable):
        assert ("TensorFlow" in message) == (remedy is not None)
        assert (remedy or "") in message


def test_possible_settings_pass(gpus):
    for settings, environ in [
        ({}, {"TPU_NAME": "t"}),
        ({"jit_compile": True, "strategy": "one_device"}, {"CUDA_VISIBLE_DEVICES": "0,1"}),
        ({"strategy": "parameter_server", "workers": 2}, {"CUDA_VISIBLE_DEVICES": "0,1"}),
        ({"strategy": "parameter_server", "workers": 9}, {}),
        ({"strategy": "tpu", "tpu": "local"}, {"TPU_ACCELERATOR_TYPE": "v5p-8"}),
        ({"strategy": "one_device", "tpu": "local"}, {}),
    ]:
        resources.check_devices(Training(**settings), {"CUDA_VISIBLE_DEVICES": "", **environ})


@pytest.mark.parametrize("device", ["_TPU_FILE", "_VFIO_FILES"])
def test_a_device_of_this_machine_may_be_the_local_tpu(gpus, monkeypatch, tmp_path, device):
    (tmp_path / "0").touch()
    monkeypatch.setattr(resources, device, str(tmp_path / "0"))
    local = Training(strategy="tpu", tpu="local")
    resources.check_devices(local, {"CUDA_VISIBLE_DEVICES": ""})


EVERYTHING = {
    "model": "text_cnn",
    "epochs": 3,
    "learning_rate": 0.08,
    "steps_per_execution": 3,
    "early_stopping": 2,
    "profile_steps": (2, 4),
    "checkpoint_steps": 7,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "training",
    [
        {"strategy": "one_device", "mixed_precision": "float16", "jit_compile": True},
        exhaustive({"jit_compile": True, "loop": "custom", "model": "cnn_lstm"}),
        exhaustive({"strategy": "mirrored", "devices": 2, "mixed_precision": "float16"}),
        exhaustive({"strategy": "central_storage", "devices": 2, "mixed_precision": "bfloat16"}),
        exhaustive({"strategy": "multi_worker_mirrored", "workers": 2, "model": "wide_and_deep"}),
        exhaustive({"strategy": "parameter_server", "loop": "custom", "model": "transformer"}),
    ],
    ids=lambda training: "-".join(str(value) for value in training.values()),
)
def test_accepted_settings_train_with_all_other_settings(prepared, tmp_path, training):
    done = run_task(make_job(prepared, tmp_path, **{**EVERYTHING, **training}), tmp_path)
    assert done.code == 0, done.log
    assert "is disabled after an error" not in done.log
    assert list((tmp_path / "run").rglob("*.xplane.pb")), "nothing was profiled"
    assert summary(tmp_path)["val_loss"] > 0
    assert probabilities(tmp_path).dtype == "float32", "the exported model has mixed precision"
