"""A cluster of processes on this machine, for one training: started, watched, ended.

Each process is `python -m trainer_module.task JOB` with a TF_CONFIG of its own. None outlives the
training: neither an error, nor SIGTERM or Ctrl-C, nor a kill of this process leaves one behind.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import logging

from core import progress
from trainer_module.distribute import cluster, machine
from trainer_module.distribute.child import Child
from trainer_module.distribute.cluster import Cluster
from trainer_module.settings import Training, TrainingJob

COMMAND = (sys.executable, "-m", "trainer_module.task")
JOB_FILE = "job.json"
"""In `model_run_dir`: the job, as `python -m trainer_module.task` takes it."""
BAD_SETTINGS = 2
"""Exit code of a process that found a setting wrong."""

_PORT_TAKEN = "Could not start gRPC server"
"""All that TensorFlow says when it cannot listen on its port."""
_ATTEMPTS = 3
"""At a cluster whose ports nobody else takes."""
_RESTARTS = 3
"""Of workers beside parameter servers, all together."""
_SETTLE_SECONDS = 2.0
"""In which the process that took the others with it shows, if its end is not noticed first."""
_SECONDS_TO_SAVE = 30.0
"""Between SIGTERM and SIGKILL, for a checkpoint."""
_SECONDS_TO_END = 5.0
"""The same, where there is nothing to save."""
_SECONDS_BEHIND_CHIEF = 60.0
"""That other workers may take to end once the chief has."""


class TrainingFailed(RuntimeError):
    """A process of the cluster failed, and the training with it; the message is one line."""


class _PortTaken(Exception):
    """Somebody got hold of a port between the choice of it and its use."""


def has_peers(training: Training) -> bool:
    """Whether a training takes more than one process."""
    return training.strategy == "parameter_server" or training.workers > 1


def processes(training: Training) -> dict[str, int]:
    """Task type -> how many processes of it a training takes."""
    if training.strategy == "parameter_server":
        return {
            cluster.CHIEF: 1,
            cluster.WORKER: training.workers,
            cluster.PS: training.parameter_servers,
        }
    return {cluster.WORKER: training.workers} if has_peers(training) else {cluster.CHIEF: 1}


def is_needed(training: Training, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a process that has used TensorFlow already has to leave this training to `run`.

    That is every cluster but the one that TF_CONFIG names, and every training that splits the CPU
    or sets up collective operations, which TensorFlow does only before its first operation.

    Raises:
      ValueError: TF_CONFIG is malformed.
    """
    if Cluster.from_environ(environ) is not None:
        return False
    collective = training.strategy == "multi_worker_mirrored"
    return has_peers(training) or collective or (training.devices or 1) > 1


def run(job: TrainingJob, command: Sequence[str] = COMMAND) -> None:
    """Trains in as many processes of this machine as `job` asks for, one at least.

    Their logs go to this process's log, the chief's progress is reported as this process's own,
    CPU cores and GPUs are shared out among the workers. A worker beside parameter servers that
    dies is started again. SIGTERM and SIGINT, if this is the main thread, let the training write a
    checkpoint before it ends; the second one does not wait for that.

    Args:
      job: written to `JOB_FILE` in its `model_run_dir`.
      command: what each process runs; the path of the job is added to it.

    Raises:
      ValueError: a setting is wrong; the message is what the process said.
      TrainingFailed: a process died, or could not be started.
      SystemExit, KeyboardInterrupt: SIGTERM, SIGINT came.
    """
    command = [*command, _write(job)]
    logging.info("Training with: %s", " ".join(command))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with _LocalCluster(job.training, command) as processes:
                processes.start()
                processes.watch()
            return
        except _PortTaken as taken:
            if attempt == _ATTEMPTS:
                raise TrainingFailed(f"{taken}; so it went {_ATTEMPTS} times") from None
            logging.warning("%s; starting again, on other ports", taken)


class _LocalCluster:
    """One attempt at a training: its processes have all ended when the context is left."""

    def __init__(self, training: Training, command: Sequence[str]):
        self._command = command
        self._places = {place.task.name: place for place in machine.share(processes(training))}
        self._children: dict[str, Child] = {}
        self._events: queue.SimpleQueue[Child | signal.Signals] = queue.SimpleQueue()
        self._restarts = 0
        self._seconds_to_save = _SECONDS_TO_END
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> _LocalCluster:
        self._exits.enter_context(_signals_into(self._events))
        # In reverse: the servers end last, because without them the chief could save nothing.
        self._exits.callback(self._end, serving=True)
        self._exits.callback(self._end, serving=False)
        return self

    def __exit__(self, *unused: object) -> None:
        self._exits.close()

    def start(self) -> None:
        for name in self._places:
            self._start(name)

    def watch(self) -> None:
        """Returns when the training is over; `run` says what is raised, beside _PortTaken."""
        chief = next(child for child in self._children.values() if self._task(child).chief)
        while chief.code != 0:
            ended = self._next_end()
            if ended.code == 0 and not self._task(ended).serves:
                continue
            if self._may_restart(ended):
                self._restarts += 1
                logging.warning(
                    "%s %s; starting it again (%d of %d times)",
                    ended.name,
                    ended.how,
                    self._restarts,
                    _RESTARTS,
                )
                self._start(ended.name)
                continue
            self._settle(chief)
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
        """The next child that ends.

        Raises:
          queue.Empty: the deadline, of `time.monotonic()`, has come.
          SystemExit, KeyboardInterrupt: this process was told to end.
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
            and ended.code != BAD_SETTINGS
            and not ended.says(_PORT_TAKEN)
        )

    def _settle(self, chief: Child) -> None:
        """Waits until it shows which process failed first, or that the chief succeeded."""
        children = self._children.values()
        deadline = time.monotonic() + _SETTLE_SECONDS
        with contextlib.suppress(queue.Empty):
            while chief.code != 0 and not any(map(self._is_cause, children)):
                if all(child.code is not None for child in children):
                    return
                self._next_end(deadline)

    @staticmethod
    def _is_cause(child: Child) -> bool:
        """Whether it ended in a way that the end of no other process explains."""
        wrong = child.code == BAD_SETTINGS or child.says(_PORT_TAKEN)
        return child.killed_from_outside or wrong

    def _failure(self) -> Exception:
        for child in self._children.values():
            if child.says(_PORT_TAKEN):
                address = self._task(child).address
                return _PortTaken(
                    f"{child.name} cannot listen on {address}, another process took that port"
                )
        failed = [
            child
            for child in self._children.values()
            if child.noticed is not None and (child.code != 0 or self._task(child).serves)
        ]
        # One that found a setting wrong may have told so, and not have ended yet; another has.
        first = min(
            failed,
            key=lambda child: (
                not child.killed_from_outside,
                child.code != BAD_SETTINGS,
                child.lost_peer,
                child.noticed,
            ),
        )
        if first.code == BAD_SETTINGS:
            return ValueError(first.error)
        return TrainingFailed(
            f"{first.name} {first.how}; nothing was exported, run again to continue from the "
            "last checkpoint"
        )

    def _wait_for_workers(self) -> None:
        """Once the chief has ended, lets the other workers end too; servers never do."""
        workers = self._those_that_serve(False)
        try:
            self._wait_for(workers, _SECONDS_BEHIND_CHIEF)
        except queue.Empty:
            logging.warning("%s: still there though training is over", _names(workers))
        for child in workers:
            if child.code:
                logging.warning("%s %s, but training was over by then", child.name, child.how)

    def _end(self, *, serving: bool) -> None:
        """Ends processes with SIGTERM, and with SIGKILL in the end or when told to end again."""
        children = self._those_that_serve(serving)
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
        logging.warning("Killing what does not end: %s", _names(children))
        for child in children:
            child.kill()
        with contextlib.suppress(queue.Empty, SystemExit, KeyboardInterrupt):
            self._wait_for(children, _SECONDS_TO_END)

    def _wait_for(self, children: Sequence[Child], seconds: float) -> None:
        """Until all of them have ended; see `_next_end` for what is raised."""
        deadline = time.monotonic() + seconds
        while any(child.code is None for child in children):
            self._next_end(deadline)

    def _those_that_serve(self, serving: bool) -> list[Child]:
        return [c for c in self._children.values() if self._task(c).serves == serving]


def _names(children: Sequence[Child]) -> str:
    """Of those that have not ended."""
    return ", ".join(child.name for child in children if child.code is None)


def _report(said: dict[str, Any]) -> None:
    progress.report(**said)


def _ignore(said: dict[str, Any]) -> None:
    """The other workers take the same steps as the chief."""


def _write(job: TrainingJob) -> str:
    path = os.path.join(job.model_run_dir, JOB_FILE)
    text = job.model_dump_json(indent=2)
    if "://" in path:
        import tensorflow as tf

        with tf.io.gfile.GFile(path, "w") as file:
            file.write(text)
    else:
        os.makedirs(job.model_run_dir, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    return path


@contextlib.contextmanager
def _signals_into(events: queue.SimpleQueue[Any]) -> Iterator[None]:
    """SIGTERM and SIGINT become events; where they cannot, in another thread, they stay as is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda n, frame: events.put(signal.Signals(n)))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
