"""The ClusterTrainingRuntime of TrainJobs; `make reference` writes it to kubeflow/training.yaml.

A TrainJob replaces the image, the command, the number of pods and their resources.
"""

from __future__ import annotations

from pipeline.cluster_settings import RUNTIME
from platforms.kubernetes_objects import Object
from platforms.training_jobs.manifests import (
    GRACE_SECONDS,
    LABELS,
    NODE,
    bare_pod,
    index_variable,
    job_policies,
    job_set_policies,
    pod_metadata,
)


def training_runtime() -> Object:
    """Return the ClusterTrainingRuntime, whose JobSet has the policies of our own JobSets."""
    pod = bare_pod(NODE, None)
    [container] = pod["containers"]
    container["env"].append(index_variable())
    pod |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": GRACE_SECONDS}
    job = {
        **job_policies(NODE),
        # Node 0 is the chief. Parameter servers never end by themselves.
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        "template": {"metadata": pod_metadata(), "spec": pod},
    }
    # Kubeflow Trainer changes the replicated jobs with this label.
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    replicated_job = {
        "name": NODE,
        "replicas": 1,
        "template": {"metadata": {"labels": labels}, "spec": job},
    }
    job_set = {**job_set_policies(chief=NODE), "replicatedJobs": [replicated_job]}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {
            "name": RUNTIME,
            "labels": {**LABELS, "trainer.kubeflow.org/framework": "tensorflow"},
        },
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": job_set}},
    }
