"""Strategies: what a name becomes on this machine, each in a process of its own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def strategy(name, devices):
    """(class name, replicas), or the error; devices are set up once per process."""
    code = (
        "from trainer_module.strategies import make_strategy\n"
        "try:\n"
        f"    strategy = make_strategy({name!r}, {devices})\n"
        "    print('RESULT', type(strategy).__name__, strategy.num_replicas_in_sync)\n"
        "except ValueError as error:\n"
        "    print('RESULT', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return line.removeprefix("RESULT ")


@pytest.mark.parametrize(
    ("name", "devices", "expected"),
    [
        ("auto", None, "OneDeviceStrategy 1"),
        ("auto", 2, "MirroredStrategy 2"),
        ("one_device", None, "OneDeviceStrategy 1"),
        ("mirrored", None, "MirroredStrategy 1"),
        ("mirrored", 3, "MirroredStrategy 3"),
    ],
)
def test_names_on_a_machine_without_gpus(name, devices, expected, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert strategy(name, devices) == expected


def test_an_unknown_name_is_told():
    assert "training.strategy: 'gpu' is none of" in strategy("gpu", None)
