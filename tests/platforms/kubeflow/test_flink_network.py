"""The connections that the NetworkPolicies of a Flink cluster permit."""

from __future__ import annotations

from tests.platforms.kubeflow.flink_objects import BOTH, PLAIN, of_kind, selects, templates, the


@BOTH
def test_only_the_cluster_and_the_steps_of_its_namespace_connect(overrides):
    pods = {name: each["metadata"]["labels"] for name, each in templates(overrides).items()}
    pods["step"] = {"pipelines.kubeflow.org/v2_component": "true"}
    pods["training"] = {
        "app.kubernetes.io/name": "amazon-reviews",
        "app.kubernetes.io/component": "trainer",
    }
    policies = of_kind(overrides, "NetworkPolicy")
    found = {}
    for target in ("job manager", "task manager", "job server"):
        [policy] = [p for p in policies if selects(p["spec"]["podSelector"], pods[target])]
        assert policy["metadata"]["namespace"] == the(overrides, "Service")["metadata"]["namespace"]
        found[target] = {
            source: sorted(
                port["port"]
                for rule in policy["spec"]["ingress"]
                if any(
                    selects(each["podSelector"], labels)
                    for each in rule["from"]
                    if "namespaceSelector" not in each
                )
                for port in rule["ports"]
            )
            for source, labels in pods.items()
        }
    internal = [6121, 6122, 6123, 6124, 6125]
    of_flink = {
        "job manager": internal,
        "task manager": internal,
        "job server": [8081],
        "step": [8081],
        "training": [],
    }
    nothing = {"job manager": [], "task manager": [], "job server": [], "training": []}
    assert found == {
        "job manager": of_flink,
        "task manager": of_flink,
        "job server": {**nothing, "step": [8098, 8099]},
    }
    # Flink does not choose its ports at random, which no policy could permit.
    flink = the(overrides, "FlinkDeployment")["spec"]["flinkConfiguration"]
    assert sorted(int(port) for key, port in flink.items() if key.endswith(".port")) == internal


def test_from_other_namespaces_only_the_operator_connects():
    others = [
        (source["podSelector"], [port["port"] for port in rule["ports"]])
        for policy in of_kind(PLAIN, "NetworkPolicy")
        for rule in policy["spec"]["ingress"]
        for source in rule["from"]
        if "namespaceSelector" in source
    ]
    operator = {"matchLabels": {"app.kubernetes.io/name": "flink-kubernetes-operator"}}
    assert others == [(operator, [8081])]


def test_two_clusters_of_a_namespace_do_not_connect_to_each_other():
    [policy, _] = of_kind(PLAIN, "NetworkPolicy")
    other = templates(f"{PLAIN},beam.flink.kubernetes.name=other")
    assert not any(
        selects(policy["spec"]["podSelector"], each["metadata"]["labels"])
        for each in other.values()
    )
