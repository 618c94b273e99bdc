"""The kinds of jobs, and the choice of the kind that the cluster has."""

from __future__ import annotations

from absl import logging
from kubernetes.client import ApiClient

from core.errors import InputError
from platforms.training_jobs.client import JobClient
from platforms.training_jobs.job_kind import JobKind
from platforms.training_jobs.jobset import JobSet
from platforms.training_jobs.settings import KubernetesJobSettings
from platforms.training_jobs.tfjob import TFJob
from platforms.training_jobs.trainjob import TrainJob

KINDS: tuple[JobKind, ...] = (TFJob(), TrainJob(), JobSet())
"""The kinds in the order in which `auto` prefers them."""


def supported_kind(api: ApiClient, settings: KubernetesJobSettings) -> JobKind:
    """Return the kind of job for a training; log the choice of `auto`.

    Raises:
      InputError: the setting is `auto`, and the cluster can run none of the kinds.
      Unreachable: the Kubernetes API did not respond for minutes.
    """
    reasons: list[str] = []
    for kind in KINDS:
        if settings.kind == kind.name:
            return kind
        if settings.kind == "auto":
            reason = JobClient(api, kind, settings.namespace).unavailable_reason()
            if not reason:
                because = f" ({'; '.join(reasons)})" if reasons else ""
                logging.info("kubeflow.training_job auto: %s%s", kind.name, because)
                return kind
            reasons.append(reason)
    raise InputError(f"this cluster cannot train on several machines: {'; '.join(reasons)}")
