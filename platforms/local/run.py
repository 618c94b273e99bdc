"""One run of TFX's local engine, and its outcome."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import Any

from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.proto.orchestration import pipeline_pb2

from components.run_report import history
from components.run_report.sources import installed_versions
from core.metadata import connection_config
from pipeline.config import PipelineConfig, recorded_settings
from platforms.local import unchanged
from platforms.local.locks import waiting_lock
from platforms.local.outcome import Outcome, run_outcome
from platforms.local.pushed_models import mark_replaced


class Runner(LocalDagRunner):
    """TFX's local runner. It records the settings and the outcome of its run in ML Metadata.

    Attributes:
      run_id: id of the run after its end; None before. It stays None in `tfx pipeline create`,
        which replaces `run` to read the pipeline.
    """

    def __init__(self, config: PipelineConfig):
        super().__init__()
        self._config = config
        self._paths = config.paths
        self.run_id: str | None = None
        self._fingerprint = unchanged.fingerprint(config)

    def run_with_ir(self, pipeline: pipeline_pb2.Pipeline, **options: Any) -> None:
        """See TFX's LocalDagRunner."""
        with _first_connection(self._paths.metadata), self._metadata() as handle:
            mark_replaced(handle, self._paths.serving)
        recorded = {
            history.SETTINGS: recorded_settings(self._config),
            history.VERSIONS: json.dumps(installed_versions()),
        }
        for node in pipeline.nodes:
            for context in node.pipeline_node.contexts.contexts:
                if context.type.name == history.RUN_TYPE:
                    for key, value in recorded.items():
                        context.properties[key].field_value.string_value = value
        try:
            super().run_with_ir(pipeline, **options)
        finally:
            # During the run TFX has replaced the runtime parameter by its value.
            self.run_id = pipeline.runtime_spec.pipeline_run_id.field_value.string_value

    def outcome(self) -> Outcome:
        """Return the outcome of the run, and record it.

        Raises:
          NoOutcomeError: see `outcome.run_outcome`.
        """
        assert self.run_id is not None
        with self._metadata() as handle:
            outcome = run_outcome(handle, self.run_id)
            result = json.dumps(dataclasses.asdict(outcome))
            history.record(handle.store, self.run_id, history.OUTCOME, result)
            unchanged.record(handle.store, self.run_id, self._config, self._fingerprint)
        return outcome

    def record_failure(self, error: str) -> None:
        """Record the error of the run in one line."""
        if self.run_id:
            with self._metadata() as handle:
                history.record(handle.store, self.run_id, history.ERROR, error)

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
