"""The table of a run's components, and the lines at the end of a run."""

import io
import logging
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

from cli.monitor import run_monitored, run_pipeline
from cli.run_state import Component, RunState
from core.events import ComponentState, Failed, Phase, RunOutcome, decode, encode
from core.progress import Event
from pipeline.config import load_config
from platforms.local import events
from tests.outcomes import OUTCOME


def watched(*received):
    state = RunState()
    for event in received:
        state.update(event)
    return state


def shown(renderable, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


RUNNING, CACHED, FINISHED = (
    ComponentState("Trainer", state) for state in ("running", "cached", "finished")
)


@pytest.mark.parametrize("state", ["done", "cached"])
def test_a_component_runs_and_ends(state):
    seen = watched(RUNNING, *([CACHED] if state == "cached" else []))
    assert seen.running
    seen.update(FINISHED)
    assert (seen.components[0].state, seen.running) == (state, None)


def progress(done, total, source=""):
    return Event("steps", done, total, source)


def test_the_progress_of_several_files_is_summed_and_units_are_next_to_each_other():
    tasks = Event("tasks at http://localhost:8081", 2, 9, "job")
    steps = (progress(10, None, "a"), progress(5, None, "b"), progress(20, None, "a"))
    state = watched(RUNNING, steps[0], tasks, *steps[1:])
    assert "25 steps, 2/9 tasks at http://localhost:8081" in shown(state)


def test_two_passes_over_files_show_the_bytes_of_all(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def read(unit, done, total=None, source="0"):
        return Event(unit, done, total, source)

    labels = "bytes searched for labels"
    state = watched(RUNNING, read(labels, 0, 4_000_000, ""), read(labels, 1_500_000))
    assert "1.5/4.0 MB searched for labels" in shown(state)
    for event in (read(labels, 4_000_000), read("bytes read", 0, 4_000_000, "")):
        state.update(event)
    state.update(read("bytes read", 1_000_000))
    now += 10
    state.update(read("bytes read", 2_000_000))
    assert "4.0/4.0 MB searched for labels, 2.0/4.0 MB read, 20 s left" in shown(state)


def test_a_training_shows_steps_loss_stage_and_the_time_left(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def trained(done, loss):
        return Event("steps", done, 400, loss=loss)

    state = watched(RUNNING, Event(stage="compiling"))
    assert "compiling" in shown(state)
    # The first step includes a compilation, so it is not the measure of the others.
    now = 130.0
    state.update(trained(20, 0.7))
    assert "left" not in shown(state)
    now = 140.0
    state.update(trained(120, 0.43219))
    assert " 120/400 steps, loss 0.4322, 28 s left" in shown(state)
    assert "120/400 steps, loss 0.4322" in shown(state, 80)
    now = 140.5
    state.update(Event(stage="evaluating"))
    assert "120/400 steps, loss 0.4322, evaluating" in shown(state)
    state.update(trained(5, 0.9))  # the next trial of a Tuner
    now = 150.5
    state.update(trained(15, 0.9))
    assert "15/400 steps, loss 0.9000, 6 min left" in shown(state)
    state.update(FINISHED)
    assert shown(state).rstrip().endswith("15/400 steps, loss 0.9000")


def test_the_total_is_that_of_all_sources_and_is_reported_once():
    state = watched(RUNNING, progress(0, 90), progress(20, None, "a"), progress(10, None, "b"))
    assert "30/90 steps" in shown(state)


def test_a_narrow_terminal_has_the_progress_below_the_table():
    state = RunState([Component(name, "waiting") for name in ("ReviewExampleGen", "Trainer")])
    for event in (RUNNING, progress(12, 400)):
        state.update(event)
    lines = shown(state, width=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert [line.split()[:2] for line in lines[1:3]] == [
        ["ReviewExampleGen", "waiting"],
        ["Trainer", "running"],
    ]
    assert lines[3] == "Trainer: 12/400 steps"


def test_components_wait_until_they_begin_and_are_not_run_after_a_failure():
    state = RunState([Component(name, "waiting") for name in ("Transform", "Trainer", "Pusher")])
    state.update(Phase("loading TFX"))
    assert [c.state for c in state.components] == ["waiting"] * 3
    assert "loading TFX" in shown(state)
    state.update(ComponentState("Transform", "running"))
    assert "loading TFX" not in shown(state)
    state.update(ComponentState("Transform", "finished"))
    state.update(RUNNING)
    assert state.update(Failed("boom", "Trainer")).name == "Trainer"
    assert [c.state for c in state.components] == ["done", "failed", "not run"]


def test_the_outcome_of_a_run_passes_through_the_pipe():
    sent = decode(encode(RunOutcome(OUTCOME.to_json())))
    state = watched(Phase("reading the result"), sent)
    assert (state.outcome, state.phase) == (OUTCOME, "")


def test_a_failure_after_the_last_component_does_not_change_its_state():
    state = watched(RUNNING, FINISHED)
    state.update(Failed("boom"))
    assert state.components[0].state == "done"


def test_a_sender_sends_the_states_of_a_component_and_forgets_it_at_its_end(monkeypatch):
    sender, sent = events.RunSender(None), []
    monkeypatch.setattr(sender, "send", sent.append)
    messages = {
        "Component %s is running.": "Pusher",
        "A cached execution %d is used.": 7,
        "Component %s is finished.": "Pusher",
    }
    for message, argument in messages.items():
        sender.emit(logging.makeLogRecord({"msg": message, "args": (argument,)}))
    states = ("running", "cached", "finished")
    assert sent == [ComponentState("Pusher", state) for state in states]
    assert sender.component is None


def test_text_that_looks_like_markup_is_shown_unchanged():
    state = watched(ComponentState("[red]:x:", "running"), progress(3, 9, "a"))
    files = replace(progress(3, 9), unit="[b]files")
    state.update(files)
    assert "[red]:x:" in shown(state)
    assert "3/9 [b]files" in shown(watched(RUNNING, files))


@pytest.mark.parametrize("terminal", ["dumb", "none"])
def test_without_a_cursor_each_event_is_one_plain_line(terminal, tmp_path, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    monkeypatch.setenv("TERM", "dumb")
    sent = "\n".join(map(encode, [Phase("loading TFX"), RUNNING, progress(3, 9), FINISHED]))
    code = f"import os; os.write(int(os.environ['EVENTS_FD']), {sent.encode()!r} + b'\\n')"
    console = Console(file=io.StringIO(), width=80, force_terminal=terminal == "dumb")
    run_monitored(console, tmp_path / "log", [sys.executable, "-c", code])
    found = console.file.getvalue().splitlines()
    assert found[0] == "loading TFX …"
    assert [line.split()[:2] for line in found[1:]] == [["Trainer", "done"]]


def test_the_pipelines_process_gets_the_settings_that_were_checked(tmp_path, monkeypatch):
    # The handler of SIGTERM would outlive the test.
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    file = tmp_path / "mine.yaml"
    file.write_text(f"serving_check: {{golden: {tmp_path}/first.txt}}\n")
    checked = load_config(str(file), [f"paths.root={tmp_path}/runs"], environ={})
    # Somebody edits the file, and exports other settings, before the process has started.
    file.write_text(f"serving_check: {{golden: {tmp_path}/second.txt}}\n")
    monkeypatch.setenv("PIPELINE_CONFIG", str(file))
    monkeypatch.setenv("PIPELINE_SET", "training.epochs=none")
    watched = run_pipeline(Console(file=io.StringIO()), tmp_path / "log", checked)
    assert watched.failure.wrong_input
    assert f"{tmp_path}/first.txt" in watched.failure.error
