"""Run a pipeline in a process of its own, and show its components while they work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cli.options import settings_words
from cli.watched import Component, Watched
from core import exit_codes, processes
from core.events import VARIABLE, receive
from pipeline.nodes import TRAINER
from platforms.local import events
from platforms.local.locks import DESCRIPTOR_VARIABLE

_REFRESH_PER_SECOND = 4
_SECONDS_TO_SAVE = 40.0
"""Seconds for an interrupted training to exit. Its processes have less for their checkpoint."""
_SECONDS_TO_END = 10.0
"""Seconds for a pipeline's process to exit after it closed the pipe of its events."""
_INTERRUPTED_CODES = (-signal.SIGINT, exit_codes.INTERRUPTED)


def local_runner(config: str | None = None, overrides: Sequence[str] = ()) -> list[str]:
    """Return the command that runs the pipeline in a process of its own.

    Args:
      config, overrides: those of `load_config`.
    """
    return processes.command("platforms.local.main", *settings_words(config, overrides))


def run_watched(
    console: Console,
    log: Path,
    command: Sequence[str],
    names: Sequence[str] = (),
    lock: int | None = None,
) -> Watched:
    """Run a pipeline in a process of its own, and show its components while they work.

    The log lines of TFX, Beam and TensorFlow go to `log`. A terminal shows a live table; any other
    output gets one line for each phase and for each component that ends.

    Args:
      console: the output for the table.
      log: the file to append to.
      command: the command, such as the one that `local_runner` returns.
      names: the components that will run, shown as waiting. A component that is missing here is
        added when it starts.
      lock: descriptor that `locks.lock_root` returned; the process inherits it.
    """
    watched = Watched.of(names)
    process, pipe = _start(command, log, lock)
    live = Live(watched, console=console, refresh_per_second=_REFRESH_PER_SECOND)
    # The last state of the table stays on the terminal.
    with _sigterm_as_ctrl_c(), live if console.is_terminal else contextlib.nullcontext():
        try:
            for event in receive(pipe):
                ended = watched.update(event)
                if not console.is_terminal:
                    _print_line(console, watched, event, ended)
            with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END)
        except KeyboardInterrupt:
            _interrupt(console, process, watched)
        finally:
            pipe.close()
            process.kill()
            code = process.wait()
        if watched.outcome is None and watched.failure is None:
            _fail(
                watched,
                f"the pipeline's process ended with exit code {code}",
                interrupted=code in _INTERRUPTED_CODES,
            )
    return watched


@contextlib.contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that a training saves a checkpoint.

    By default SIGTERM would end this process, and the pipeline's process would end with it at once.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def show_unchanged(
    console: Console, names: Sequence[str], outcome: Mapping[str, Any] | None
) -> Watched:
    """Show a run as finished whose components, with these names, would all be cache hits."""
    watched = Watched(
        [Component(name).end(events.CACHED) for name in names], outcome=dict(outcome or {})
    )
    if console.is_terminal:
        console.print(watched)
    else:
        for component in watched.components:
            _print_line(console, watched, {"event": events.FINISHED}, component)
    return watched


def _fail(watched: Watched, error: str, *, interrupted: bool) -> str | None:
    """Mark the run as failed without an event; return the name of the running component."""
    running = watched.running.name if watched.running else None
    watched.fail({"component": running, "error": error, "input": False, "interrupted": interrupted})
    return running


def _interrupt(console: Console, process: subprocess.Popen[bytes], watched: Watched) -> None:
    """End the pipeline after Ctrl-C or SIGTERM; a training saves a checkpoint first, until a second
    signal."""
    running = _fail(watched, "interrupted", interrupted=True)
    if running != TRAINER:
        return
    console.print(
        Text("interrupted: the training saves a checkpoint; press Ctrl-C again to end it at once"),
        soft_wrap=True,
    )
    process.terminate()
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        process.wait(_SECONDS_TO_SAVE)


def _start(
    command: Sequence[str], log: Path, lock: int | None
) -> tuple[subprocess.Popen[bytes], TextIO]:
    environ, descriptors = {}, []
    if lock is not None:
        environ[DESCRIPTOR_VARIABLE] = str(lock)
        descriptors.append(lock)
    read_end, write_end = os.pipe()
    with log.open("ab") as sink:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=[write_end, *descriptors],
            env={**os.environ, **environ, VARIABLE: str(write_end)},
            # Only this process receives Ctrl-C from the terminal; it ends the other one.
            start_new_session=True,
        )
    os.close(write_end)
    return process, os.fdopen(read_end)


def _print_line(
    console: Console, watched: Watched, event: dict[str, Any], ended: Component | None
) -> None:
    if event["event"] == events.PHASE:
        console.print(Text(f"{watched.phase} …"))
    if ended:
        console.print(Text(f"{ended.name:<20} {ended.state:<8} {ended.seconds():7.1f} s"))
