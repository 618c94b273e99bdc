"""Run a Beam pipeline as a Flink job: submit it, wait for it, cancel it."""

from __future__ import annotations

import argparse
import functools
import itertools
import subprocess
import threading
import uuid
from collections.abc import Callable
from typing import Any

import grpc
from apache_beam.options.pipeline_options import (
    DebugOptions,
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners import runner
from apache_beam.runners.portability import job_server, portable_runner
from apache_beam.transforms import environments

from core.errors import UserError
from pipeline.cluster_settings import LOCAL
from platforms.flink import failures, guard, rest
from platforms.flink.failures import FlinkError
from platforms.flink.job_server import JobServer, shared_job_server
from platforms.flink.rest import Watch
from platforms.flink.worker_pool import start_threads

PREFIX = f"amazon-reviews-{uuid.uuid4().hex[:12]}-"
"""The beginning of the names of this process's jobs."""
_JOBS = itertools.count(1)
_cancel_with_this_process = functools.cache(guard.start)
_SECONDS_BETWEEN = 1.0
_MILLISECONDS_TO_SEND = 1000
_MILLISECONDS_WITHOUT_WORK = 500
"""Time after which Flink ends a worker that no stage uses. This time must be shorter than the delay
before the restart of a job, because within it a restarted job would use a dead worker again."""
_ARTIFACT_PORT = 8098
"""The port at which a job server of Kubernetes accepts the files of a pipeline."""


class FlinkJobOptions(PipelineOptions):
    """The options of FlinkRunner that Beam does not define."""

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        add: Any = parser.add_argument
        add("--flink_jars", help="Folder with the jars of the job server and of Flink.")
        add("--flink_logs", help="Folder for the log of the job server.")
        add("--flink_timeout_seconds", type=int, help="See beam.flink.timeout_seconds.")


class FlinkRunner(portable_runner.PortableRunner):
    """Beam's PortableRunner with a job server of its own, progress, a timeout and one-line errors.

    With Beam's own FlinkRunner the job server continues to run after `kill -9`, accepts workers on
    every network interface, and has no timeout for a worker that does not start.
    """

    def __init__(self) -> None:
        super().__init__()
        self._server: JobServer | None = None
        self._pool: grpc.Server | None = None

    def default_environment(self, options: PipelineOptions) -> environments.Environment:
        portable = options.view_as(PortableOptions)
        debug = options.view_as(DebugOptions)
        # The experiment disables `pip freeze`, which takes seconds and whose output is not used.
        debug.add_experiment("disable_logging_submission_environment")
        # By default Flink receives the output of a bundle at the end of the bundle, and shows no
        # progress until then.
        debug.add_experiment(f"data_buffer_time_limit_ms={_MILLISECONDS_TO_SEND}")
        # By default Flink ends the workers between two stages of a job, and starts new ones.
        portable.environment_cache_millis = _MILLISECONDS_WITHOUT_WORK
        if portable.environment_type == "LOOPBACK":
            portable.environment_config, self._pool = start_threads(options)
            portable.environment_type = "EXTERNAL"
        return environments.Environment.from_options(portable)

    def stop_workers(self) -> None:
        """Stop the workers that `default_environment` started, if any."""
        if self._pool:
            self._pool.stop(1)

    def default_job_server(self, options: PipelineOptions) -> job_server.JobServer:
        own, flink = options.view_as(FlinkJobOptions), options.view_as(FlinkRunnerOptions)
        self._server = shared_job_server(
            own.flink_jars, flink.flink_master, flink.parallelism, own.flink_logs
        )
        return job_server.ExternalJobServer(self._server.endpoint, timeout=60)

    def run_portable_pipeline(
        self, pipeline: beam_runner_api_pb2.Pipeline, options: PipelineOptions
    ) -> runner.PipelineResult:
        master = options.view_as(FlinkRunnerOptions).flink_master
        portable = options.view_as(PortableOptions)
        name = options.view_as(GoogleCloudOptions).job_name = f"{PREFIX}{next(_JOBS):04d}"
        if master != LOCAL:
            # The guard ends after this process, and must not keep a pipe of its output open.
            _cancel_with_this_process(address=master, prefix=PREFIX, stdout=subprocess.DEVNULL)
        if portable.job_endpoint:
            host = portable.job_endpoint.rpartition(":")[0]
            portable.artifact_endpoint = portable.artifact_endpoint or f"{host}:{_ARTIFACT_PORT}"
        try:
            result = super().run_portable_pipeline(pipeline, options)
        except BaseException as error:
            if master != LOCAL:
                rest.cancel_jobs(master, name)
            self.stop_workers()
            if isinstance(error, grpc.RpcError | grpc.FutureTimeoutError):
                endpoint = portable.job_endpoint or (self._server and self._server.endpoint)
                raise FlinkError(
                    f"the Flink job server {endpoint} did not accept the job: "
                    f"{failures.grpc_problem(error)}"
                ) from error
            raise
        seconds = options.view_as(FlinkJobOptions).flink_timeout_seconds
        return FlinkResult(result, name, self._server, master, seconds, self.stop_workers)


class FlinkResult(runner.PipelineResult):
    """A job on Flink that runs or has ended.

    Args:
      result: Beam's result of the job.
      name: the name of the job at Flink.
      server: the job server of this process; None if the settings name another one.
      master: the address of the Flink cluster, or `[local]`.
      seconds: the seconds without progress after which the job is cancelled.
      stop_workers: stops the workers of this process.
    """

    def __init__(
        self,
        result: portable_runner.PipelineResult,
        name: str,
        server: JobServer | None,
        master: str,
        seconds: float,
        stop_workers: Callable[[], None],
    ):
        super().__init__(runner.PipelineState.RUNNING)
        self._result, self._name, self._seconds = result, name, seconds
        self._server, self._master, self._stop_workers = server, master, stop_workers

    def cancel(self) -> None:
        """Cancel the job at Flink itself, because the job server may have ended or may hang."""
        address = self._rest_address()
        if address:
            rest.cancel_jobs(address, self._name)
        self._stop_workers()

    def wait_until_finish(self, duration: int | None = None) -> str:
        """Report the progress of the job until its end; return its last state.

        Args:
          duration: not used.

        Raises:
          FlinkError: the job failed, or made no progress before the timeout.
          UserError: a worker raised this error, for example an InputError.
        """
        outcome: list[BaseException | str] = []

        def wait() -> None:
            try:
                outcome.append(self._result.wait_until_finish())
            except BaseException as error:
                outcome.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        try:
            waiting.start()
            watch = Watch(self._name, self._rest_address, self._seconds)
            while waiting.is_alive():
                waiting.join(_SECONDS_BETWEEN)
                if waiting.is_alive() and watch.stalled():
                    raise FlinkError(
                        f"the Flink job made no progress for {self._seconds} s "
                        f"(beam.flink.timeout_seconds); see {self._log()}"
                    )
        except BaseException:
            self.cancel()
            raise
        self._stop_workers()
        if isinstance(outcome[0], BaseException):
            raise self._error(outcome[0]) from outcome[0]
        self._state = outcome[0]
        return self._state

    def _rest_address(self) -> str | None:
        return self._server.rest_address if self._server else self._master

    def _log(self) -> str:
        if self._server:
            return str(self._server.log)
        return f"the logs of the TaskManagers of {self._master}"

    def _error(self, error: BaseException) -> UserError:
        if isinstance(error, grpc.RpcError):
            # The job may still run on a cluster, but nothing could read its result.
            self.cancel()
            return FlinkError(f"the Flink job server ended before the job; see {self._log()}")
        message = str(error)
        return failures.worker_error(message) or FlinkError(
            f"the Flink job failed: {failures.java_cause(message)}; see {self._log()}"
        )
