"""The kinds of jobs, and the choice of the kind that the cluster has."""

from __future__ import annotations

from absl import logging
from kubernetes.client import ApiClient

from core.errors import InputError
from pipeline.cluster_settings import RUNTIME
from platforms.training_jobs.client import JobClient
from platforms.training_jobs.job_kind import JobKind
from platforms.training_jobs.jobset import JobSet
from platforms.training_jobs.settings import KubernetesJobSettings
from platforms.training_jobs.tfjob import TFJob
from platforms.training_jobs.trainjob import RUNTIME_KIND, RUNTIMES, TrainJob

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
            reason = _unavailable_reason(JobClient(api, kind, settings.namespace))
            if not reason:
                because = f" ({'; '.join(reasons)})" if reasons else ""
                logging.info("kubeflow.training_job auto: %s%s", kind.name, because)
                return kind
            reasons.append(reason)
    raise InputError(
        f"this cluster cannot train on several machines: {'; '.join(reasons)}. Install JobSet, "
        "Kubeflow Trainer 2 or the Kubeflow training operator v1"
    )


def _unavailable_reason(client: JobClient) -> str:
    """Return the reason why the cluster cannot run jobs of a kind; empty if it can."""
    if not client.is_served():
        return f"no {client.kind.title} CRD"
    if isinstance(client.kind, TrainJob):
        try:
            if not client.has_cluster_object(RUNTIMES, RUNTIME):
                return f"no {RUNTIME_KIND} {RUNTIME}"
        except InputError as error:
            return str(error)
    return ""
