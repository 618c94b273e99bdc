"""The objects that `amazon-reviews flink` writes, for tests."""

from __future__ import annotations

import pytest
import yaml

from pipeline.config import load_config
from platforms.kubeflow.flink.manifests import render
from tests.platforms.settings import IMAGE

PLAIN = f"cluster.image={IMAGE}"
ALL = (
    f"{PLAIN},kubeflow.namespace=ml,kubeflow.service_account=runner,"
    "kubeflow.volume={claim: reviews, mount: /mnt/reviews},"
    "beam.flink.kubernetes={name: words, task_managers: 3, slots: 4, task_manager_memory: 6g,"
    " task_manager_cpu: 1.5, workers_memory: 5Gi, workers_cpu: 3, service_account: jobs,"
    " node_selector: {pool: data}, tolerations: [{key: data, operator: Exists}]},"
    "beam.flink.network_memory=1g,beam.flink.kubernetes.restarts=7,beam.flink.job_server_memory=1g"
)
BOTH = pytest.mark.parametrize("overrides", [PLAIN, ALL], ids=["defaults", "all settings"])


def written(overrides):
    """Return the text of the file."""
    return render(load_config("sample", environ={"PIPELINE_SET": overrides}))


def objects(overrides):
    """Return the objects of the file by kind and name."""
    documents = yaml.safe_load_all(written(overrides))
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def of_kind(overrides, kind):
    return [each for (found, _), each in objects(overrides).items() if found == kind]


def the(overrides, kind):
    [one] = of_kind(overrides, kind)
    return one


def templates(overrides):
    """Return the templates of the pods: of the JobManager, the TaskManagers and the job server."""
    spec = the(overrides, "FlinkDeployment")["spec"]
    return {
        "job manager": spec["jobManager"]["podTemplate"],
        "task manager": spec["taskManager"]["podTemplate"],
        "job server": the(overrides, "Deployment")["spec"]["template"],
    }


def workers(overrides):
    """Return the container of the Python workers."""
    return templates(overrides)["task manager"]["spec"]["containers"][1]


def selects(selector, labels):
    return selector["matchLabels"].items() <= labels.items()
