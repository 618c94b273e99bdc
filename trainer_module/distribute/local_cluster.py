"""A cluster of processes on this machine for one training.

Each process runs `trainer_module.task JOB` with a TF_CONFIG of its own. No process
outlives the training, even if the training ends by an error, SIGTERM, Ctrl-C or a kill of this
process.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from core import exit_codes, processes, progress
from trainer_module.distribute import cluster, machine
from trainer_module.distribute.child import Child
from trainer_module.distribute.cluster import Cluster
from trainer_module.distribute.processes import count_processes, has_peers, write_job
from trainer_module.distribute.signals import signals_into
from trainer_module.settings import Training, TrainingJob

_PORT_TAKEN = "Could not start gRPC server"
"""TensorFlow's whole message if it cannot listen on its port."""
_ATTEMPTS = 3
"""Attempts to start a cluster; an attempt fails if another process has taken one of its ports."""
_RESTARTS = 3
"""Restarts of workers under parameter servers, over all workers."""
_SECONDS_TO_FIND_CAUSE = 2.0
"""Time to wait for the end of the process that caused the failure, if others ended before it."""
_SECONDS_TO_SAVE = 30.0
"""Time between SIGTERM and SIGKILL if a checkpoint may be written."""
_SECONDS_TO_END = 5.0
"""Time between SIGTERM and SIGKILL if there is nothing to save."""
_SECONDS_BEHIND_CHIEF = 60.0
"""Time for the other workers to end after the chief."""


class TrainingFailed(RuntimeError):
    """A training that failed because of one of its processes; the message is one line."""


class _PortTaken(Exception):
    """A port that another process took after this one had chosen it."""


def is_needed(training: Training, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a process that has already used TensorFlow must delegate a training to `run`.

    This is so for several processes without TF_CONFIG. It is also so for a training that splits the
    CPU or uses collective operations, both of which TensorFlow sets up before its first operation.

    Raises:
      ValueError: TF_CONFIG is malformed.
    """
    if Cluster.from_environ(environ) is not None:
        return False
    collective = training.strategy == "multi_worker_mirrored"
    return has_peers(training) or collective or (training.devices or 1) > 1


def run(job: TrainingJob, command: Sequence[str] = ()) -> None:
    """Train in as many processes of this machine as `job` requires, at least one.

    This process copies the logs of the processes to its own, and reports the chief's progress. CPU
    cores and GPUs are divided among the workers. Under parameter servers a worker that dies is
    restarted. In the main thread, SIGTERM and SIGINT end the training after a checkpoint; a second
    signal ends it without one.

    Args:
      job: written to `JOB_FILE` in its `model_run_dir`.
      command: the command of each process, to which the path of the job is appended; empty: the
        command that runs `trainer_module.task`.

    Raises:
      ValueError: a setting is wrong; the message is that of the process.
      TrainingFailed: a process died, or could not be started.
      SystemExit, KeyboardInterrupt: this process received SIGTERM or SIGINT.
    """
    command = [*(command or processes.command("trainer_module.task")), write_job(job)]
    logging.info("Training with: %s", " ".join(command))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with _LocalCluster(job.training, command) as local:
                local.start()
                local.watch()
            return
        except _PortTaken as taken:
            if attempt == _ATTEMPTS:
                raise TrainingFailed(f"{taken}; gave up after {_ATTEMPTS} attempts") from None
            logging.warning("%s; retrying with other ports", taken)


class _LocalCluster:
    """The processes of one attempt at a training; when the context ends, all of them have ended."""

    def __init__(self, training: Training, command: Sequence[str]):
        self._command = command
        self._places = {
            place.task.name: place for place in machine.share(count_processes(training))
        }
        self._children: dict[str, Child] = {}
        self._events: queue.SimpleQueue[Child | signal.Signals] = queue.SimpleQueue()
        self._restarts = 0
        self._seconds_to_save = _SECONDS_TO_END
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> _LocalCluster:
        self._exits.enter_context(signals_into(self._events))
        # Callbacks run in reverse order: the servers end last, because the chief needs them to
        # save.
        self._exits.callback(self._end, serving=True)
        self._exits.callback(self._end, serving=False)
        return self

    def __exit__(self, *unused: object) -> None:
        self._exits.close()

    def start(self) -> None:
        for name in self._places:
            self._start(name)

    def watch(self) -> None:
        """Return when the training is over; raise _PortTaken, or an error that `run` documents."""
        chief = next(child for child in self._children.values() if self._task(child).chief)
        while chief.code != 0:
            ended = self._next_end()
            if ended.code == 0 and not self._task(ended).serves:
                continue
            if self._may_restart(ended):
                self._restarts += 1
                logging.warning(
                    "%s %s; restarting it (%d of %d restarts)",
                    ended.name,
                    ended.outcome,
                    self._restarts,
                    _RESTARTS,
                )
                self._start(ended.name)
                continue
            self._wait_for_cause(chief)
            if chief.code != 0:
                raise self._failure()
        self._wait_for_workers()

    def _start(self, name: str) -> None:
        place = self._places[name]
        try:
            self._children[name] = Child(
                name,
                self._command,
                place.environ,
                place.cores,
                on_end=self._events.put,
                on_progress=_report if place.task.chief else _ignore,
            )
        except OSError as error:
            raise TrainingFailed(f"{name} could not be started: {error}") from error

    def _task(self, child: Child) -> Cluster:
        return self._places[child.name].task

    def _next_end(self, deadline: float | None = None) -> Child:
        """Return the next child that ends.

        Raises:
          queue.Empty: the deadline, by `time.monotonic()`, has passed.
          SystemExit, KeyboardInterrupt: this process received SIGTERM or SIGINT.
        """
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        event = self._events.get(timeout=timeout)
        if isinstance(event, Child):
            return event
        self._seconds_to_save = _SECONDS_TO_SAVE
        raise KeyboardInterrupt if event is signal.SIGINT else SystemExit(128 + event)

    def _may_restart(self, ended: Child) -> bool:
        task = self._task(ended)
        return (
            task.serves
            and task.task_type == cluster.WORKER
            and self._restarts < _RESTARTS
            and ended.code != exit_codes.BAD_INPUT
            and not ended.log_contains(_PORT_TAKEN)
        )

    def _wait_for_cause(self, chief: Child) -> None:
        """Wait until the process that caused the failure has ended, or the chief has succeeded."""
        children = self._children.values()
        deadline = time.monotonic() + _SECONDS_TO_FIND_CAUSE
        with contextlib.suppress(queue.Empty):
            while chief.code != 0 and not any(map(self._is_cause, children)):
                if all(child.code is not None for child in children):
                    return
                self._next_end(deadline)

    @staticmethod
    def _is_cause(child: Child) -> bool:
        """Return whether the process ended for a reason other than the end of a peer."""
        wrong = child.code == exit_codes.BAD_INPUT or child.log_contains(_PORT_TAKEN)
        return child.killed_from_outside or wrong

    def _failure(self) -> Exception:
        for child in self._children.values():
            if child.log_contains(_PORT_TAKEN):
                address = self._task(child).address
                return _PortTaken(
                    f"{child.name} cannot listen on {address}, another process took that port"
                )
        failed = [
            child
            for child in self._children.values()
            if child.noticed is not None and (child.code != 0 or self._task(child).serves)
        ]
        # Of several processes with a wrong setting, the first to send its failure may not have
        # ended yet. So the exit code has priority over the time.
        first = min(
            failed,
            key=lambda child: (
                not child.killed_from_outside,
                child.code != exit_codes.BAD_INPUT,
                child.lost_peer,
                child.noticed,
            ),
        )
        if first.code == exit_codes.BAD_INPUT:
            return ValueError(first.error)
        return TrainingFailed(
            f"{first.name} {first.outcome}; nothing was exported, run again to continue from the "
            "last checkpoint"
        )

    def _wait_for_workers(self) -> None:
        """Wait for the other workers to end after the chief; servers never end by themselves."""
        workers = self._select(serving=False)
        try:
            self._wait_for(workers, _SECONDS_BEHIND_CHIEF)
        except queue.Empty:
            logging.warning("%s: still running after the training has finished", _names(workers))
        for child in workers:
            if child.code:
                logging.warning(
                    "%s %s, ignored because the training has finished", child.name, child.outcome
                )

    def _end(self, *, serving: bool) -> None:
        """End processes by SIGTERM; after a timeout or a second signal to this one, by SIGKILL."""
        children = self._select(serving=serving)
        for child in children:
            child.terminate()
        try:
            self._wait_for(children, _SECONDS_TO_END if serving else self._seconds_to_save)
        except queue.Empty:
            self._kill(children)
        except (SystemExit, KeyboardInterrupt):
            self._kill(children)
            raise

    def _kill(self, children: Sequence[Child]) -> None:
        logging.warning("Killing processes that are still running: %s", _names(children))
        for child in children:
            child.kill()
        with contextlib.suppress(queue.Empty, SystemExit, KeyboardInterrupt):
            self._wait_for(children, _SECONDS_TO_END)

    def _wait_for(self, children: Sequence[Child], seconds: float) -> None:
        """Wait until all of them have ended; `_next_end` documents the errors."""
        deadline = time.monotonic() + seconds
        while any(child.code is None for child in children):
            self._next_end(deadline)

    def _select(self, *, serving: bool) -> list[Child]:
        """Return the parameter servers and their workers, or all other processes."""
        return [c for c in self._children.values() if self._task(c).serves == serving]


def _names(children: Sequence[Child]) -> str:
    """Return the names of the children that have not ended."""
    return ", ".join(child.name for child in children if child.code is None)


def _report(progress_values: dict[str, Any]) -> None:
    progress.report(**progress_values)


def _ignore(progress_values: dict[str, Any]) -> None:
    """Discard the progress of a worker, which takes the same steps as the chief."""
