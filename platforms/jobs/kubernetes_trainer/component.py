"""KubernetesTrainer: the Trainer whose replicas run in a job on Kubernetes."""

from __future__ import annotations

from tfx.dsl.components.base import executor_spec

from platforms.jobs.component import JobTrainer
from platforms.jobs.kubernetes.settings import KUBERNETES_JOB_KEY
from platforms.jobs.kubernetes_trainer.executor import KubernetesExecutor


class KubernetesTrainer(JobTrainer):
    """A Trainer whose step starts a job, with `KubernetesJobSettings`, and follows it."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(KubernetesExecutor)
    JOB_KEY = KUBERNETES_JOB_KEY
