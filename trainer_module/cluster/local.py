"""A cluster of processes on this machine for one training.

Each process runs `trainer_module.task JOB` with its own TF_CONFIG. No process outlives the
training, even if the training fails, or if this process is killed or receives SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from absl import logging

from core import events, exit_codes, processes, progress
from core.errors import ERROR_LINE
from trainer_module.cluster import exits
from trainer_module.cluster.resources import (
    ProcessResources,
    allocate,
    count_processes,
    write_job,
)
from trainer_module.cluster.tf_config import WORKER
from trainer_module.settings import Training, TrainingJob

_RESTARTS = 3
"""Restarts of workers under parameter servers, over all workers."""
_SECONDS_TO_FIND_CAUSE = 2.0
"""Time to wait until the process that caused a failure ends, if other processes ended before it."""
_SECONDS_TO_SAVE = 30.0
"""Time between SIGTERM and SIGKILL if a checkpoint may be written. After the end of the chief its
peers have the same time to end."""
_SECONDS_TO_END = 5.0
"""Time between SIGTERM and SIGKILL if there is nothing to save."""

_EXTERNAL_SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
"""Signals that are never caused by the end of a peer."""
_LINES_KEPT = 20
_SECONDS_TO_DRAIN = 2.0


class TrainingFailed(RuntimeError):
    """A training that failed because of one of its processes; the message is one line."""


def run(job: TrainingJob, command: Sequence[str] = ()) -> None:
    """Train in as many processes of this machine as `job` requires, at least one.

    Under parameter servers a worker that dies is restarted. In the main thread, SIGTERM and SIGINT
    end the training after a checkpoint; a second signal ends it without one.

    Args:
      job: the training. It is written to `JOB_FILE` in its `model_run_dir`.
      command: the command of each process, to which the path of the job is appended; empty:
        `trainer_module.task`.

    Raises:
      ValueError: a setting is wrong; the message is that of the process.
      TrainingFailed: a process died.
      SystemExit, KeyboardInterrupt: this process received SIGTERM or SIGINT.
    """
    command = [*(command or processes.command("trainer_module.task")), write_job(job)]
    logging.info("Training with: %s", " ".join(command))
    _LocalCluster(job.training, command).run()


class _LocalCluster:
    def __init__(self, training: Training, command: Sequence[str]):
        self._command = command
        self._resources = {each.task.name: each for each in allocate(count_processes(training))}
        self._children: dict[str, Child] = {}
        self._ended: list[Child] = []
        self._events: queue.SimpleQueue[Child | signal.Signals] = queue.SimpleQueue()
        self._restarts = 0
        self._seconds_to_save = _SECONDS_TO_END

    def run(self) -> None:
        """Return when the training is over and all processes have ended."""
        with processes.signals_to(self._events.put, signal.SIGTERM, signal.SIGINT):
            try:
                progress.report_stage(f"starting {len(self._resources)} processes")
                for name in self._resources:
                    self._start(name)
                self._watch()
            finally:
                # The servers end last, because the chief needs them to save.
                try:
                    self._end(self._select(serving=False), self._seconds_to_save)
                finally:
                    self._end(self._select(serving=True), _SECONDS_TO_END)
                    for each in self._resources.values():
                        each.port.close()

    def _start(self, name: str) -> None:
        self._children[name] = Child(self._command, self._resources[name], self._events.put)

    def _watch(self) -> None:
        """Return when the chief has succeeded; raise the error of the process that failed first."""
        chief = next(child for child in self._children.values() if child.task.chief)
        while chief.code != 0:
            ended = self._next_end()
            if ended.code == 0 and not ended.task.serves:
                continue
            if self._may_restart(ended):
                self._restarts += 1
                again = f"restarting it ({self._restarts} of {_RESTARTS} restarts)"
                logging.warning("%s %s; %s", ended.name, ended.outcome, again)
                self._ended.remove(ended)
                self._start(ended.name)
                continue
            # The process that caused the failure may end after its peers.
            with contextlib.suppress(queue.Empty):
                self._wait_for(list(self._children.values()), _SECONDS_TO_FIND_CAUSE)
            if chief.code != 0:
                raise self._failure()
        with contextlib.suppress(queue.Empty):
            self._wait_for(self._select(serving=False), _SECONDS_TO_SAVE)

    def _next_end(self, deadline: float | None = None) -> Child:
        """Return the next child that ends; raise queue.Empty at the deadline."""
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        event = self._events.get(timeout=timeout)
        if isinstance(event, Child):
            event.code = event.process.returncode
            self._ended.append(event)
            return event
        self._seconds_to_save = _SECONDS_TO_SAVE
        raise KeyboardInterrupt if event is signal.SIGINT else SystemExit(128 + event)

    def _may_restart(self, ended: Child) -> bool:
        is_server = ended.task.serves and ended.task.task_type == WORKER
        return is_server and self._restarts < _RESTARTS and ended.code != exit_codes.BAD_INPUT

    def _failure(self) -> Exception:
        # If causes are equal, the process that ended first counts.
        first = min(
            (each for each in self._ended if each.code != 0 or each.task.serves),
            key=lambda child: (
                child.killed_by not in _EXTERNAL_SIGNALS,
                child.code != exit_codes.BAD_INPUT,
                child.code == exits.LOST_PEER,
            ),
        )
        if first.code == exit_codes.BAD_INPUT:
            return ValueError(first.error)
        return TrainingFailed(
            f"{first.name} {first.outcome}; nothing was exported, {exits.RUN_AGAIN}"
        )

    def _end(self, children: Sequence[Child], seconds: float) -> None:
        """End processes by SIGTERM; after a timeout or a second signal to this one, by SIGKILL.

        Raises:
          KeyboardInterrupt: the second signal was SIGINT.
          SystemExit: the second signal was SIGTERM.
        """  # noqa: DOC501
        for child in children:
            child.process.terminate()
        try:
            self._wait_for(children, seconds)
        except (queue.Empty, SystemExit, KeyboardInterrupt) as reason:
            running = ", ".join(child.name for child in children if child.code is None)
            logging.warning("Killing processes that are still running: %s", running)
            for child in children:
                child.process.kill()
            with contextlib.suppress(queue.Empty, SystemExit, KeyboardInterrupt):
                self._wait_for(children, _SECONDS_TO_END)
            if not isinstance(reason, queue.Empty):
                raise

    def _wait_for(self, children: Sequence[Child], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while any(child.code is None for child in children):
            self._next_end(deadline)

    def _select(self, *, serving: bool) -> list[Child]:
        """Return the parameter servers and their workers, or all other processes."""
        return [child for child in self._children.values() if child.task.serves == serving]


class Child:
    """A child process, whose output is copied to the log of this process line by line.

    The progress of the chief is reported as the progress of this process; the other children take
    the same steps.

    Args:
      command: the command of the process.
      resources: the task, the environment, the cores and the port of the process.
      on_end: called with this object by another thread after the process has ended. The cluster
        then sets the exit code, which is negative for a signal.
    """

    def __init__(
        self, command: Sequence[str], resources: ProcessResources, on_end: Callable[[Child], None]
    ):
        self.task, self.name = resources.task, resources.task.name
        self.code: int | None = None
        self._failure = ""
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._on_end = on_end
        reading_end, writing_end = os.pipe()
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[writing_end],
            env={**resources.environ, events.VARIABLE: str(writing_end)},
            # Only the parent receives Ctrl-C from the terminal, and ends its children.
            start_new_session=True,
        )
        os.close(writing_end)
        if resources.cores:
            # The child counts its cores when it imports TensorFlow. It may have ended already.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(self.process.pid, resources.cores)
        readers = [
            threading.Thread(target=self._read_log, daemon=True),
            threading.Thread(target=self._read_events, args=[reading_end], daemon=True),
        ]
        for reader in readers:
            reader.start()
        threading.Thread(target=self._wait, args=[readers], daemon=True).start()

    @property
    def killed_by(self) -> str | None:
        """The name of the signal that ended the process, directly or by its exit code."""
        if self.code is None or self.code == exits.LOST_PEER:
            return None
        # 128 + signal is the convention of shells, and of processes that handle a signal.
        number = -self.code if self.code < 0 else self.code - 128
        return signal.Signals(number).name if number in set(signal.Signals) else None

    @property
    def outcome(self) -> str:
        """The end of the process as a predicate of its name, such as "was killed (SIGTERM)"."""
        if self.killed_by in _EXTERNAL_SIGNALS:
            return f"was killed ({self.killed_by})"
        if self.killed_by:
            return f"crashed ({self.killed_by}): {self.error}"
        if self._failure:
            return f"failed: {self._failure}"
        return f"ended with exit code {self.code}: {self.error}"

    @property
    def error(self) -> str:
        """The reason of the end in one line: the error that the process sent, or one of its log."""
        if self._failure:
            return self._failure
        lines = [line for line in self._lines if line.strip()] or ["no output"]
        return next((line for line in reversed(lines) if ERROR_LINE.search(line)), lines[-1])

    def _read_log(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for raw in lines:
                line = raw.decode(errors="replace").rstrip()
                self._lines.append(line)
                logging.info("[%s] %s", self.name, line)

    def _read_events(self, descriptor: int) -> None:
        with os.fdopen(descriptor, errors="replace") as pipe:
            for event in events.receive(pipe):
                if isinstance(event, events.Failed):
                    self._failure = event.error
                elif isinstance(event, progress.Event) and self.task.chief:
                    progress.send(event)

    def _wait(self, readers: Sequence[threading.Thread]) -> None:
        self.process.wait()
        deadline = time.monotonic() + _SECONDS_TO_DRAIN
        for reader in readers:
            # A process that the child started may keep its ends of the pipes open.
            reader.join(max(0.0, deadline - time.monotonic()))
        self._on_end(self)
