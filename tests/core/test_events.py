"""Events through a pipe: each kind, in whole lines, whatever the kernel accepts at once."""

import json
import os

import pytest

from core import events
from core.events import ComponentState, Failed, Phase, RunOutcome
from core.progress import Event

EVENTS = [
    Event("steps", 12, 400, "worker 0", 0.25),
    Event(stage="exporting the model"),
    Phase("loading TFX"),
    ComponentState("Trainer", "running"),
    RunOutcome({"accuracy": 0.9, "reasons": ["AUC below 0.8"]}),
    Failed("no space left"),
    Failed("data.format: no such format", "ReviewExampleGen", wrong_input=True),
]


@pytest.mark.parametrize("event", EVENTS)
def test_each_kind_of_event_is_one_line_of_json_and_comes_back(event):
    line = events.encode(event)
    assert "\n" not in line
    assert events.decode(line) == event


def test_each_kind_of_event_is_tried_above():
    assert {type(event) for event in EVENTS} == set(events.Event.__args__)


def test_an_event_of_an_unknown_kind_and_an_incomplete_line_are_left_out():
    phase = events.encode(Phase("loading TFX"))
    unknown = json.dumps({"event": "heartbeat", "seconds": 3})
    assert list(events.receive([unknown, phase, phase[:-3]])) == [Phase("loading TFX")]


def test_an_event_that_the_pipe_takes_in_parts_arrives_whole(monkeypatch):
    read_end, write_end = os.pipe()
    plain = os.write
    monkeypatch.setattr(events.os, "write", lambda file, data: plain(file, data[:5]))
    sender = events.Sender(write_end)
    sender.send(Phase("loading TFX"))
    sender.fail("no space left", "Trainer")
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        assert list(events.receive(pipe)) == [
            Phase("loading TFX"),
            Failed("no space left", "Trainer"),
        ]


def test_a_long_error_is_cut(monkeypatch):
    sender, sent = events.Sender(None), []
    monkeypatch.setattr(sender, "send", sent.append)
    sender.fail("x" * 3000)
    assert sent == [Failed("x" * 2000)]
