"""The files of `kubeflow` for kubectl: restricted, and as the jobs of trainings expect."""

import re

import pytest

from pipeline.cluster_settings import RUNTIME
from platforms.training_jobs.kinds import KINDS
from platforms.training_jobs.manifests import (
    LABELS,
    NODE,
    bare_pod,
    index_variable,
    job_policies,
    job_set_policies,
    pod_metadata,
)
from tests.checkout import CHECKOUT
from tests.kubeflow_files import objects, training_runtime
from tests.platforms.training_jobs.manifests import (
    JOB_FILE,
    PARAMETER_SERVER,
    jobs_of,
    make_job,
    make_settings,
)
from tests.pod_security import violations


def test_the_server_satisfies_the_restricted_pod_security_standard():
    [service] = objects("serving.yaml")
    predictor = service["spec"]["predictor"]
    container = {"name": "kserve-container", **predictor["model"]}
    # KServe gives its init container the security context of the server.
    init = {"name": "storage-initializer", "securityContext": container["securityContext"]}
    pod = {**predictor, "containers": [container], "initContainers": [init]}
    assert violations(pod) == []
    # TensorFlow Serving's image names no user, and under this standard Kubernetes starts no root.
    assert container["securityContext"]["runAsUser"] > 0
    assert container["resources"]["requests"] == container["resources"]["limits"]


def test_the_server_is_not_older_than_the_tensorflow_that_trains():
    def number(version):
        return [int(part) for part in version.split(".")[:2]]

    [service] = objects("serving.yaml")
    stacks = list((CHECKOUT / "requirements").glob("tfx-*.txt"))
    assert len(stacks) == 2
    for file in stacks:
        [trained_with] = re.findall(r"^tensorflow==(\S+)", file.read_text(), re.MULTILINE)
        served_with = service["spec"]["predictor"]["model"]["runtimeVersion"]
        assert number(served_with) >= number(trained_with), file.name


def test_the_runtime_restarts_and_ends_the_pods_of_a_trainjob_like_those_of_a_jobset():
    runtime = training_runtime()
    assert runtime["metadata"]["name"] == RUNTIME
    spec = runtime["spec"]["template"]["spec"]
    assert job_set_policies(chief=NODE).items() <= spec.items()
    [job] = spec["replicatedJobs"]
    job = job["template"]["spec"]
    assert job_policies(NODE).items() <= job.items()
    assert job["template"]["metadata"] == pod_metadata()
    pod = bare_pod(NODE, None)
    pod["containers"][0]["env"].append(index_variable())
    assert pod.items() <= job["template"]["spec"].items()
    assert job["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_training_pods_of_all_kinds_accept_only_each_other(kind):
    _, policy = objects("training.yaml")
    [rule] = policy["spec"]["ingress"]
    selector = policy["spec"]["podSelector"]["matchLabels"]
    assert selector.items() <= LABELS.items()
    assert rule["from"] == [{"podSelector": {"matchLabels": selector}}]
    assert rule["ports"] == [{"protocol": "TCP", "port": 2222}]
    manifest = kind.make_manifest(make_job(**PARAMETER_SERVER), JOB_FILE, make_settings())
    for _, _, template in jobs_of(manifest):
        assert selector.items() <= template["metadata"]["labels"].items()
