"""Choose the kind of job that runs a training, by the settings or by what the cluster has."""

from __future__ import annotations

from absl import logging
from kubernetes.client import ApiClient

from core.errors import InputError
from platforms.jobs.jobset.status import JobSet
from platforms.jobs.kubernetes.client import JobClient, RetryPolicy
from platforms.jobs.kubernetes.kind import JobKind
from platforms.jobs.kubernetes.settings import KubernetesJobSettings
from platforms.jobs.tfjob.status import TFJob
from platforms.jobs.trainjob.status import TrainJob

KINDS: tuple[JobKind, ...] = (TFJob(), TrainJob(), JobSet())
"""The kinds in the order in which `auto` prefers them."""


def choose_kind(
    api: ApiClient, settings: KubernetesJobSettings, retries: RetryPolicy | None = None
) -> JobKind:
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
            client = JobClient(api, kind, settings.namespace, retries)
            reason = kind.missing(client, settings)
            if not reason:
                because = f" ({'; '.join(reasons)})" if reasons else ""
                logging.info("kubeflow.training_job auto: %s%s", kind.name, because)
                return kind
            reasons.append(reason)
    raise InputError(
        f"this cluster cannot train on several machines: {'; '.join(reasons)}. Install JobSet, "
        "Kubeflow Trainer 2 or the Kubeflow training operator v1"
    )
