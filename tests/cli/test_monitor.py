"""The table of a run's components, and the lines at the end of a run."""

import io
import json
import logging

import pytest
from rich.console import Console

from cli.monitor import Component, Watched, run_pipeline
from core.events import receive
from pipeline.config import load_config
from platforms.local import events


def watched(*received):
    state = Watched()
    for event in received:
        state.update(event)
    return state


def shown(renderable):
    console = Console(file=io.StringIO(), width=120)
    console.print(renderable)
    return console.file.getvalue()


RUNNING = {"event": "running", "component": "Trainer"}


@pytest.mark.parametrize("state", ["done", "cached"])
def test_a_component_runs_and_ends(state):
    seen = watched(RUNNING, *([{"event": "cached"}] if state == "cached" else []))
    assert seen.running
    seen.update({"event": "finished", "component": "Trainer"})
    assert (seen.components[0].state, seen.running) == (state, None)


def progress(done, total, source=""):
    return {"event": "progress", "unit": "steps", "done": done, "total": total, "source": source}


def test_the_progress_of_several_files_is_summed_and_units_are_next_to_each_other():
    tasks = {**progress(2, 9, "job"), "unit": "tasks at http://localhost:8081"}
    steps = (progress(10, None, "a"), progress(5, None, "b"), progress(20, None, "a"))
    state = watched(RUNNING, steps[0], tasks, *steps[1:])
    assert "25 steps, 2/9 tasks at http://localhost:8081" in shown(state)


def test_components_wait_until_they_begin_and_are_not_run_after_a_failure():
    state = Watched([Component(name, "waiting") for name in ("Transform", "Trainer", "Pusher")])
    state.update({"event": "phase", "doing": "loading TFX"})
    assert [c.state for c in state.components] == ["waiting"] * 3
    assert "loading TFX" in shown(state)
    state.update({"event": "running", "component": "Transform"})
    assert "loading TFX" not in shown(state)
    state.update({"event": "finished", "component": "Transform"})
    state.update(RUNNING)
    failed = {"event": "failed", "component": "Trainer", "error": "boom", "input": False}
    assert state.update(failed).name == "Trainer"
    assert [c.state for c in state.components] == ["done", "failed", "not run"]


def test_a_failure_after_the_last_component_does_not_change_its_state():
    state = watched(RUNNING, {"event": "finished", "component": "Trainer"})
    state.update({"event": "failed", "component": None, "error": "boom", "input": False})
    assert state.components[0].state == "done"


def test_a_sender_forgets_a_component_that_has_finished():
    sender = events.Sender(None)
    for message in ("Component %s is running.", "Component %s is finished."):
        sender.emit(logging.makeLogRecord({"msg": message, "args": ("Pusher",)}))
    assert sender.component is None


def test_text_that_looks_like_markup_is_shown_unchanged():
    state = watched({"event": "running", "component": "[red]:x:"}, progress(3, 9, "a"))
    state.update({**progress(3, 9), "unit": "[b]files"})
    assert "[red]:x:" in shown(state)
    assert "3/9 [b]files" in shown(watched(RUNNING, {**progress(3, 9), "unit": "[b]files"}))


def test_a_line_that_a_kill_cut_short_is_dropped():
    pipe = io.StringIO(json.dumps(RUNNING) + '\n{"event": "fin')
    assert list(receive(pipe)) == [RUNNING]


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
    assert watched.failure.input
    assert f"{tmp_path}/first.txt" in watched.failure.error
