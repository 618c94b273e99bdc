"""The memory of a process."""

from core import machine


def test_memory_is_measured_without_proc(monkeypatch):
    def hidden(self, *arguments, **named):
        raise PermissionError("/proc is hidden")

    monkeypatch.setattr(machine.Path, "read_text", hidden)
    assert machine.peak_rss() > 2**20
