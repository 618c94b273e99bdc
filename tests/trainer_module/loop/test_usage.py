"""Errors of the measurements never stop a training."""

import os
import time

import psutil
import pytest

from tests.trainer_module.conftest import make_job, summary
from trainer_module.distribute import machine
from trainer_module.loop import gpu_usage, memory, usage

LOST = "GPU utilisation and memory are no longer measured"


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """(script) -> an nvidia-smi on PATH that does that, on a machine that seems to have GPUs."""

    def make(script):
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        monkeypatch.setattr(usage, "_has_gpu", lambda: True)

    return make


def sampled(requests=1):
    sampler = gpu_usage.GpuSampler()
    for number in range(1, requests + 1):
        sampler.request()
        deadline = time.monotonic() + 60
        while len(sampler.samples) < number and sampler._thread.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    sampler.finish()
    return [(sample.utilisation, sample.memory) for sample in sampler.samples]


MIB = 2**20


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("50, 1000\\n70, 200", (0.6, 1200 * MIB)),
        ("[N/A], 1000", (None, 1000 * MIB)),
        ("[Not Supported], 10\\n40, [N/A]", (0.4, 10 * MIB)),
        ("40", (0.4, None)),
    ],
)
def test_figures_that_a_gpu_does_not_report_are_absent(nvidia_smi, caplog, printed, expected):
    nvidia_smi(f"printf '{printed}\\n'")
    [sample] = sampled()
    assert sample == pytest.approx(expected)
    assert LOST not in caplog.text


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("true", "printed no figure: ''"),
        ("echo '[N/A], [N/A]'", "printed no figure"),
        ("echo No devices were found", "printed no figure: 'No devices"),
        ("printf '\\377\\376,\\200\\n'", "printed no figure"),
        ("echo driver mismatch >&2; exit 18", "exit code 18: driver mismatch"),
        ("exec sleep 600", "timed out after 0.5 seconds"),
    ],
    ids=["nothing", "not available", "words", "bytes", "error", "hangs"],
)
def test_a_query_that_fails_is_logged_once_and_not_repeated(
    nvidia_smi, caplog, monkeypatch, script, message
):
    monkeypatch.setattr(gpu_usage, "_SECONDS_TO_ANSWER", 0.5)
    nvidia_smi(script)
    assert sampled(requests=3) == []
    [line] = [r.getMessage() for r in caplog.records if LOST in r.getMessage()]
    assert message in line


def test_memory_is_measured_without_proc(monkeypatch):
    def hidden(self, *arguments, **named):
        raise PermissionError("/proc is hidden")

    monkeypatch.setattr(memory.Path, "read_text", hidden)
    assert memory.peak_rss() > MIB


def test_an_error_message_of_nvidia_smi_is_not_a_gpu(nvidia_smi):
    nvidia_smi("echo NVIDIA-SMI has failed")
    assert machine._gpus({"PATH": os.environ["PATH"]}) == []


@pytest.mark.slow
class TestTrainings:
    @pytest.mark.parametrize("script", ["echo '[N/A], [N/A]'", "exec sleep 600"])
    def test_one_with_a_useless_nvidia_smi_has_all_other_figures(
        self, prepared, tmp_path, nvidia_smi, caplog, script
    ):
        from trainer_module.training import train

        nvidia_smi(script)
        train(make_job(prepared, tmp_path, epochs=2))
        figures = summary(tmp_path)
        assert figures["gpu_utilisation"] is None
        assert figures["steps"] == 32
        assert 0 < figures["cpu_utilisation"] <= 1.1
        assert (tmp_path / "model" / "saved_model.pb").exists()

    def test_one_with_gpus_has_their_utilisation(self, prepared, tmp_path, nvidia_smi):
        from trainer_module.training import train

        nvidia_smi("echo 30, 100")
        train(make_job(prepared, tmp_path, epochs=2))
        assert summary(tmp_path)["gpu_utilisation"] == pytest.approx(0.3)

    def test_one_that_can_write_neither_logs_nor_figures_exports_its_model(
        self, prepared, tmp_path, caplog
    ):
        from trainer_module.training import train

        (tmp_path / "run" / "training.json").mkdir(parents=True)
        (tmp_path / "run" / "logs").write_text("a file where the folder should be")
        train(make_job(prepared, tmp_path, epochs=2, profile_steps=(2, 3)))
        assert (tmp_path / "model" / "saved_model.pb").exists()
        lines = [record.getMessage() for record in caplog.records]
        for beginning in (
            f"{tmp_path}/run/logs: usage is no longer logged",
            "TensorBoard is disabled after an error",
            f"{tmp_path}/run/training.json cannot be written",
        ):
            assert len([line for line in lines if line.startswith(beginning)]) == 1

    def test_one_without_proc_has_no_cpu_utilisation(self, prepared, tmp_path, monkeypatch):
        from trainer_module.training import train

        def denied(self):
            raise psutil.AccessDenied

        for name in ("cpu_times", "memory_info"):
            monkeypatch.setattr(psutil.Process, name, denied)
        train(make_job(prepared, tmp_path, epochs=1))
        figures = summary(tmp_path)
        assert figures["cpu_utilisation"] is None
        assert figures["examples_per_second"] > 0
