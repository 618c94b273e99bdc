"""The cores and the memory of a process."""

import os

import pytest

from core import machine


@pytest.fixture
def container(tmp_path, monkeypatch):
    """Return a function that writes the files of cgroups, for a process with four cores."""

    def write(membership, files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "membership").write_text(membership)
        monkeypatch.setattr(machine, "_CGROUPS", tmp_path)
        monkeypatch.setattr(machine, "_MEMBERSHIP", tmp_path / "membership")
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
        machine._cpu_limit.cache_clear()

    yield write
    machine._cpu_limit.cache_clear()


@pytest.mark.parametrize(
    ("membership", "files", "cores"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 4),
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, 4),
        # The limit of the pod applies to its containers.
        ("0::/pod/main\n", {"pod/cpu.max": "300000 100000", "pod/main/cpu.max": "max 100000"}, 3),
        # The path is that of the host, which the container does not see.
        ("0::/../other\n", {"cpu.max": "200000 100000\n"}, 2),
        (
            "5:devices:/\n3:cpu,cpuacct:/docker/1\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            2,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ("", {}, 4),
    ],
)
def test_the_cores_are_those_of_the_cpu_limit_of_the_container(container, membership, files, cores):
    container(membership, files)
    assert machine.cores() == cores


def test_memory_is_measured_without_proc(monkeypatch):
    def hidden(self, *arguments, **named):
        raise PermissionError("/proc is hidden")

    monkeypatch.setattr(machine.Path, "read_text", hidden)
    assert machine.peak_rss() > 2**20
