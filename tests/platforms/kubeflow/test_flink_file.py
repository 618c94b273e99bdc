"""`kubeflow/flink/cluster.yaml`: its objects fit together."""

import re

import pytest
import yaml

from pipeline.config import load_config
from tests.checkout import CHECKOUT
from tests.pod_security import violations

TEXT = (CHECKOUT / "kubeflow" / "flink" / "cluster.yaml").read_text()
CLUSTER, SERVER, SERVICE, *POLICIES = yaml.safe_load_all(TEXT)
SPEC = CLUSTER["spec"]
FLINK = SPEC["flinkConfiguration"]
PODS = {
    "job manager": SPEC["jobManager"]["podTemplate"],
    "task manager": SPEC["taskManager"]["podTemplate"],
    "job server": SERVER["spec"]["template"],
}
WORKERS = PODS["task manager"]["spec"]["containers"][1]
[JOB_SERVER] = PODS["job server"]["spec"]["containers"]


def selects(selector, labels):
    return selector["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_every_pod_satisfies_the_restricted_pod_security_standard(pod):
    assert violations(pod["spec"]) == []
    for container in pod["spec"]["containers"]:
        # Only our own image starts with a user id other than root's.
        assert container is WORKERS or container["securityContext"]["runAsUser"] > 0


def test_the_settings_in_the_comment_reach_the_services():
    settings = re.findall(r"^#   (\S+=\S+)$", TEXT, re.MULTILINE)
    flink = load_config("sample", settings, {}).beam.flink
    name, namespace = CLUSTER["metadata"]["name"], CLUSTER["metadata"]["namespace"]
    # The operator creates this Service.
    assert flink.master == f"{name}-rest.{namespace}:8081"
    host, port = flink.job_endpoint.split(":")
    assert host == f"{SERVICE['metadata']['name']}.{SERVICE['metadata']['namespace']}"
    labels = PODS["job server"]["metadata"]["labels"]
    assert SERVICE["spec"]["selector"].items() <= labels.items()
    assert selects(SERVER["spec"]["selector"], labels)
    named = {each["name"]: each["containerPort"] for each in JOB_SERVER["ports"]}
    targets = {each["port"]: named[each["targetPort"]] for each in SERVICE["spec"]["ports"]}
    for argument in (
        f"--job-port={targets[int(port)]}",
        f"--artifact-port={targets[8098]}",
        f"--flink-master={name}-rest:8081",
    ):
        assert argument in JOB_SERVER["args"]
    slots = int(FLINK["taskmanager.numberOfTaskSlots"])
    assert flink.parallelism == SPEC["taskManager"]["replicas"] * slots
    # A TaskManager finds the pool of its own pod.
    pool_host, _, pool_port = flink.worker_pool.partition(":")
    assert pool_host == "localhost"
    assert WORKERS["command"][1:] == ["-m", "platforms.flink.worker_pool", f"[::]:{pool_port}"]
    assert WORKERS["readinessProbe"]["tcpSocket"]["port"] == int(pool_port)


def test_only_the_cluster_and_the_steps_of_its_namespace_connect():
    pods = {name: each["metadata"]["labels"] for name, each in PODS.items()}
    pods["step"] = {"pipelines.kubeflow.org/v2_component": "true"}
    pods["training"] = {
        "app.kubernetes.io/name": "amazon-reviews",
        "app.kubernetes.io/component": "trainer",
    }
    allowed = {}
    for target in PODS:
        [policy] = [p for p in POLICIES if selects(p["spec"]["podSelector"], pods[target])]
        assert policy["metadata"]["namespace"] == CLUSTER["metadata"]["namespace"]
        for rule in policy["spec"]["ingress"]:
            ports = {port["port"] for port in rule["ports"]}
            for source in rule["from"]:
                if "namespaceSelector" in source:
                    operator = {"app.kubernetes.io/name": "flink-kubernetes-operator"}
                    assert (source["podSelector"]["matchLabels"], ports) == (operator, {8081})
                    continue
                for name, labels in pods.items():
                    if selects(source["podSelector"], labels):
                        allowed.setdefault((target, name), set()).update(ports)
    assert allowed.pop(("job server", "step")) == {8099, 8098}
    # Flink does not choose its ports at random, which no policy could permit.
    internal = {int(port) for key, port in FLINK.items() if key.endswith(".port")}
    of_flink = dict.fromkeys(("job manager", "task manager"), internal)
    sources = {**of_flink, "job server": {8081}, "step": {8081}}
    expected = {(target, name): ports for target in of_flink for name, ports in sources.items()}
    assert allowed == expected
