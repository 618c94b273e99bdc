"""The files of `kubeflow` for kubectl: restricted, and as the jobs of trainings expect."""

import re

import pytest

from platforms.training_jobs.kinds import KINDS
from platforms.training_jobs.manifests import LABELS, PORT
from tests.checkout import CHECKOUT
from tests.kubeflow_files import objects, training_objects
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


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_training_pods_of_all_kinds_accept_only_each_other(kind):
    policy, _ = training_objects()
    [rule] = policy["spec"]["ingress"]
    selector = policy["spec"]["podSelector"]["matchLabels"]
    assert selector.items() <= LABELS.items()
    assert rule["from"] == [{"podSelector": {"matchLabels": selector}}]
    assert rule["ports"] == [{"protocol": "TCP", "port": PORT}]
    manifest = kind.make_manifest(make_job(**PARAMETER_SERVER), JOB_FILE, make_settings())
    for _, _, template in jobs_of(manifest):
        assert selector.items() <= template["metadata"]["labels"].items()
