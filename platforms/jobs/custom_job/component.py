"""CustomJobTrainer: the Trainer whose replicas run in a CustomJob of Vertex AI."""

from __future__ import annotations

from tfx.dsl.components.base import executor_spec

from platforms.jobs.component import JobTrainer
from platforms.jobs.custom_job.executor import CustomJobExecutor
from platforms.jobs.custom_job.settings import CUSTOM_JOB_KEY


class CustomJobTrainer(JobTrainer):
    """A Trainer whose step starts a CustomJob, with `CustomJobSettings`, and follows it."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(CustomJobExecutor)
    JOB_KEY = CUSTOM_JOB_KEY
