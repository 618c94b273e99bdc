"""Events through a pipe: whole lines, whatever the kernel accepts at once."""

import os

from core import events


def test_an_event_that_the_pipe_takes_in_parts_arrives_whole(monkeypatch):
    read_end, write_end = os.pipe()
    plain = os.write
    monkeypatch.setattr(events.os, "write", lambda file, data: plain(file, data[:5]))
    sender = events.Sender(write_end)
    sender.send("outcome", accuracy=0.9)
    sender.fail("no space left", component="Trainer")
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        assert list(events.receive(pipe)) == [
            {"event": "outcome", "accuracy": 0.9},
            {"event": "failed", "error": "no space left", "component": "Trainer"},
        ]
