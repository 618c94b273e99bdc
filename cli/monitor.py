"""Run a pipeline in a process of its own, and show its components in a table while they work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cli.console import ellipsis, is_live, print_parts
from cli.run_state import WAITING, Component, RunState
from core import exit_codes, processes
from core.events import VARIABLE, Event, Phase, receive
from core.machine import cores
from pipeline.config import PipelineConfig, recorded_settings
from pipeline.nodes import TRAINER
from pipeline.selected_nodes import node_ids
from platforms.local import folders

_REFRESH_PER_SECOND = 4
ARENAS = "MALLOC_ARENA_MAX"
"""The variable with the maximum number of parts into which glibc divides the heap of a process. By
default there are eight for each core, each with memory that the other ones cannot use: a run takes
a fifth more memory. This program sets one for each core."""
_SECONDS_TO_SAVE = 40.0
"""Timeout of an interrupted training. Its processes have less time for their checkpoint."""
_SECONDS_TO_END = 10.0
"""Timeout of a pipeline's process after it has closed the pipe of its events."""


def run_pipeline(
    console: Console, log: Path, config: PipelineConfig, lock: int | None = None
) -> RunState:
    """Run the pipeline of some settings in a process of its own; see `run_monitored`.

    The process reads `config` from its standard input, so a later change of the settings file has
    no effect.

    Args:
      console: the output for the states of the components.
      log: the file for the log lines.
      config: the settings, for which `platforms.local.folders.prepare` was called.
      lock: the descriptor that `prepare` returned.

    Returns:
      The state of the run after its end.

    Raises:
      OSError: the log cannot be written.
    """
    command = processes.command("platforms.local.main", folders.PREPARED)
    return run_monitored(console, log, command, node_ids(config), lock, recorded_settings(config))


def run_monitored(
    console: Console,
    log: Path,
    command: Sequence[str],
    names: Sequence[str] = (),
    lock: int | None = None,
    given: str = "",
) -> RunState:
    """Run a pipeline in a process of its own, and show its components while they work.

    A terminal shows a live table. Any other output, such as a pipe or a terminal that cannot move
    its cursor, has one line for each phase, and for each component that ends.

    Args:
      console: the output for the states of the components.
      log: the file for the log lines.
      command: the command of the process, which sends the events of `core.events`.
      names: the components that are shown as waiting; others are added when they start.
      lock: the descriptor that `folders.lock_root` returned, which the process inherits; None for
        a run without a lock.
      given: the content of the standard input of the process.

    Returns:
      The state of the run after its end, with its outcome or its failure.

    Raises:
      OSError: the log cannot be written, or there is no such command.
    """
    state = RunState([Component(name, WAITING) for name in names], "starting")
    # SIGTERM is treated like Ctrl-C, so that a training saves a checkpoint. By default it would end
    # this process, and the pipeline's process would end with it at once.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    process, pipe = _start(command, log, lock, given)
    live = Live(state, console=console, refresh_per_second=_REFRESH_PER_SECOND)
    # The last state of the table stays on the terminal.
    shows_table = is_live(console)
    with live if shows_table else contextlib.nullcontext():
        try:
            for event in receive(pipe):
                ended = state.update(event)
                if not shows_table:
                    _print_line(console, state, event, ended)
            with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END)
        except KeyboardInterrupt:
            _interrupt(console, process, state)
        finally:
            pipe.close()
            process.kill()
            code = process.wait()
        if state.outcome is None and state.failure is None:
            interrupted = code in (-signal.SIGINT, exit_codes.INTERRUPTED)
            state.fail(f"the pipeline's process ended with exit code {code}", interrupted)
    return state


def _interrupt(console: Console, process: subprocess.Popen[bytes], state: RunState) -> None:
    """End the pipeline after Ctrl-C or SIGTERM.

    A training saves a checkpoint first; a second signal ends it at once.
    """
    ended = state.fail("interrupted", interrupted=True)
    if ended is None or ended.name != TRAINER:
        return
    print_parts(
        console,
        "interrupted: the training saves a checkpoint; press Ctrl-C again to end it at once",
    )
    process.terminate()
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        process.wait(_SECONDS_TO_SAVE)


def _start(
    command: Sequence[str], log: Path, lock: int | None, given: str
) -> tuple[subprocess.Popen[bytes], TextIO]:
    """Start a process; return it and the pipe from which its events are read."""
    read_end, write_end = os.pipe()
    # Not a pipe: this process cannot write to the pipe of a process that has ended.
    with log.open("ab") as sink, tempfile.TemporaryFile(dir=log.parent) as source:
        source.write(given.encode())
        source.seek(0)
        process = subprocess.Popen(
            list(command),
            stdin=source,
            stdout=sink,
            stderr=sink,
            pass_fds=[write_end] if lock is None else [write_end, lock],
            env={ARENAS: str(cores()), **os.environ, VARIABLE: str(write_end)},
            # Only this process receives Ctrl-C from the terminal; it ends the other one.
            start_new_session=True,
        )
    os.close(write_end)
    return process, os.fdopen(read_end)


def _print_line(console: Console, state: RunState, event: Event, ended: Component | None) -> None:
    if isinstance(event, Phase):
        console.print(Text(f"{state.phase} {ellipsis(console)}"))
    if ended:
        console.print(Text(f"{ended.name:<20} {ended.state:<8} {ended.seconds():7.1f} s"))
