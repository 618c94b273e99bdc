"""One run of TFX's local engine, and its outcome."""

from __future__ import annotations

import contextlib
from typing import Any

from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.proto.orchestration import pipeline_pb2

from pipeline.config import PipelineConfig
from platforms.local.locks import waiting_lock
from platforms.local.metadata import connection_config
from platforms.local.outcome import Outcome, run_outcome
from platforms.local.pushed_models import mark_replaced


class Runner(LocalDagRunner):
    """TFX's local runner, extended by the outcome of its run.

    Attributes:
      run_id: id of the run after its end; None before. It stays None in `tfx pipeline create`,
        which replaces `run` to read the pipeline.
    """

    def __init__(self, config: PipelineConfig):
        super().__init__()
        self._paths = config.paths
        self.run_id: str | None = None

    def run_with_ir(self, pipeline: pipeline_pb2.Pipeline, **options: Any) -> None:
        """See TFX's LocalDagRunner."""
        with _first_connection(self._paths.metadata), self._metadata() as handle:
            mark_replaced(handle, self._paths.serving)
        super().run_with_ir(pipeline, **options)
        # During the run TFX has replaced the runtime parameter by its value.
        self.run_id = pipeline.runtime_spec.pipeline_run_id.field_value.string_value

    def outcome(self) -> Outcome:
        """Return the outcome of the run.

        Raises:
          NoOutcomeError: see `outcome.run_outcome`.
        """
        assert self.run_id is not None
        with self._metadata() as handle:
            return run_outcome(handle, self.run_id)

    def _metadata(self) -> metadata.Metadata:
        return metadata.Metadata(connection_config(self._paths.metadata))


def _first_connection(location: str) -> contextlib.AbstractContextManager[None]:
    """Return a lock for the first connection to an SQLite file that may be new.

    Two processes that create ML Metadata's tables at the same time fail: "There are a subset of
    tables".
    """
    if "://" in location:
        return contextlib.nullcontext()
    return waiting_lock(f"{location}.lock")
