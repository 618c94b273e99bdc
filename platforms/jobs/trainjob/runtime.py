"""The ClusterTrainingRuntime of our TrainJobs, which an administrator applies once."""

from __future__ import annotations

from typing import Any

from platforms.jobs.jobset.manifest import index_variable, job_policies, job_set_policies
from platforms.jobs.kubernetes.pod_template import LABELS, bare_pod, pod_metadata
from platforms.jobs.trainjob.manifest import API_GROUP, API_VERSION, NODE, RUNTIME_KIND

_SECONDS_TO_SAVE = 60


def make_runtime(name: str, image: str | None) -> dict[str, Any]:
    """Return the runtime. Each TrainJob sets the image, the command, the pods and their number.

    Args:
      name: the name of the runtime.
      image: the default image, for a TrainJob that sets none; None: no default.
    """
    pod = bare_pod(NODE, image)
    pod["containers"][0]["env"].append(index_variable())
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": RUNTIME_KIND,
        "metadata": {
            "name": name,
            "labels": {**LABELS, f"{API_GROUP}/framework": "tensorflow"},
        },
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {
                "spec": {
                    **job_set_policies(chief=NODE),
                    "replicatedJobs": [
                        {
                            "name": NODE,
                            "replicas": 1,
                            "template": {
                                "metadata": {
                                    "labels": {f"{API_GROUP}/trainjob-ancestor-step": "trainer"}
                                },
                                "spec": {
                                    **job_policies(NODE),
                                    # Node 0 is the chief, the last one to end. Parameter servers
                                    # never end by themselves.
                                    "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
                                    "template": {
                                        "metadata": pod_metadata(),
                                        "spec": {
                                            **pod,
                                            "restartPolicy": "Never",
                                            "terminationGracePeriodSeconds": _SECONDS_TO_SAVE,
                                        },
                                    },
                                },
                            },
                        }
                    ],
                }
            },
        },
    }
