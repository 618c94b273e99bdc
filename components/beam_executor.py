"""The base class of our Beam executors, whose pipelines run in this process by default."""

from __future__ import annotations

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor

from core.local_beam import make_pipeline


class LocalBeamExecutor(base_beam_executor.BaseBeamExecutor):
    """A Beam executor of TFX that creates its pipelines with `core.local_beam`.

    Put it before TFX's own executor in the list of base classes.
    """

    def _make_beam_pipeline(self) -> beam.Pipeline:
        if self._make_beam_pipeline_fn is not None:
            return super()._make_beam_pipeline()
        return make_pipeline(self._beam_pipeline_args)
