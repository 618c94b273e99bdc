"""TFJobTrainer: the Trainer whose replicas run in a TFJob."""

from __future__ import annotations

from tfx.dsl.components.base import executor_spec

from platforms.jobs.component import JobTrainer
from platforms.jobs.tfjob.executor import TFJobExecutor
from platforms.jobs.tfjob.settings import TFJOB_KEY


class TFJobTrainer(JobTrainer):
    """A Trainer whose step starts a TFJob, with `TFJobSettings`, and follows it."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(TFJobExecutor)
    JOB_KEY = TFJOB_KEY
