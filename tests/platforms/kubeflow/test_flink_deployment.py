"""The Flink cluster that `amazon-reviews flink` writes for Kubernetes."""

from __future__ import annotations

import copy
import re

import pytest
import yaml
from typer.testing import CliRunner

from cli.app import app
from core.errors import ConfigError
from pipeline.config import load_config
from platforms.kubeflow.flink.manifests import render
from tests import core_kinds, crd
from tests.platforms.settings import IMAGE
from tests.pod_security import violations

PLAIN = f"cluster.image={IMAGE}"
ALL = (
    f"{PLAIN},kubeflow.namespace=ml,kubeflow.service_account=runner,"
    "kubeflow.volume={claim: reviews, mount: /mnt/reviews},"
    "beam.flink.kubernetes={name: words, task_managers: 3, slots: 4, task_manager_memory: 6g,"
    " task_manager_cpu: 1.5, workers_memory: 5Gi, workers_cpu: 3, service_account: jobs,"
    " node_selector: {pool: data}, tolerations: [{key: data, operator: Exists}]},"
    "beam.flink.network_memory=1g,beam.flink.retries=7,beam.flink.job_server_memory=1g"
)
both = pytest.mark.parametrize("overrides", [PLAIN, ALL], ids=["defaults", "all settings"])
FLINK_CRD = "flinkdeployment-2026-07.yaml"


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


@pytest.mark.real_data
@both
def test_the_real_crd_accepts_the_cluster(real_data, overrides):
    file = real_data / "crds" / FLINK_CRD
    assert crd.problems(the(overrides, "FlinkDeployment"), file) == []


@pytest.mark.real_data
def test_the_check_against_the_crd_finds_wrong_fields(real_data):
    wrong = the(PLAIN, "FlinkDeployment")
    wrong["spec"]["flinkVersion"] = "1.19"
    wrong["spec"]["taskManagers"] = wrong["spec"].pop("taskManager")
    wrong["spec"]["jobManager"]["replicas"] = "1"
    found = "\n".join(crd.problems(wrong, real_data / "crds" / FLINK_CRD))
    for each in ("'1.19' is none of", "taskManagers is unknown", "'1' is no integer"):
        assert each in found


@both
def test_kubernetes_knows_every_field_of_the_other_objects(overrides):
    others = [each for kind, each in objects(overrides).items() if kind[0] != "FlinkDeployment"]
    assert [each["kind"] for each in others] == [
        "Deployment",
        "Service",
        "NetworkPolicy",
        "NetworkPolicy",
    ]
    for each in others:
        assert core_kinds.problems(each) == []


def test_the_check_of_the_other_objects_finds_wrong_fields():
    wrong = copy.deepcopy(the(PLAIN, "Deployment"))
    pod = wrong["spec"]["template"]["spec"]
    pod["containers"][0]["arguments"] = pod["containers"][0].pop("args")
    pod["volumes"][0].pop("name")
    wrong["spec"]["replicas"] = "1"
    found = "\n".join(core_kinds.problems(wrong))
    for each in ("arguments is unknown", "`name`, must not be `None`", "'1' is no int"):
        assert each in found


@both
@pytest.mark.parametrize("of", ["job manager", "task manager", "job server"])
def test_every_pod_satisfies_the_restricted_pod_security_standard(overrides, of):
    pod = templates(overrides)[of]["spec"]
    assert violations(pod) == []
    for container in pod["containers"]:
        # Only our own image starts with a user id other than root's.
        if container.get("image") != IMAGE:
            assert container["securityContext"]["runAsUser"] > 0


@both
def test_every_container_has_requests_and_limits(overrides):
    spec = the(overrides, "FlinkDeployment")["spec"]
    for manager in ("jobManager", "taskManager"):
        # The operator sets the requests and limits of the main container to these values.
        assert set(spec[manager]["resource"]) == {"cpu", "memory"}
    server = templates(overrides)["job server"]["spec"]["containers"][0]
    for container in (server, workers(overrides)):
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert set(container["resources"]["limits"]) == {"cpu", "memory"}


def test_the_settings_reach_the_cluster():
    cluster = the(ALL, "FlinkDeployment")
    assert cluster["metadata"]["name"] == "words"
    assert cluster["metadata"]["namespace"] == "ml"
    spec = cluster["spec"]
    # A session cluster, whose TaskManagers run before a pipeline starts.
    assert "job" not in spec and spec["mode"] == "standalone"
    assert (spec["image"], spec["flinkVersion"]) == ("flink:1.19-java17", "v1_19")
    assert spec["taskManager"]["replicas"] == 3
    assert spec["taskManager"]["resource"] == {"cpu": 1.5, "memory": "6g"}
    assert spec["serviceAccount"] == "jobs"
    flink = spec["flinkConfiguration"]
    assert set(map(type, flink.values())) == {str}
    assert flink["taskmanager.numberOfTaskSlots"] == "4"
    assert flink["taskmanager.memory.network.min"] == "1g"
    assert flink["taskmanager.memory.network.max"] == "1g"
    assert flink["restart-strategy.fixed-delay.attempts"] == "7"
    # The Python workers access the buckets of the pipeline.
    assert flink["kubernetes.taskmanager.service-account"] == "runner"
    assert "classloader.resolve-order" not in flink
    limits = workers(ALL)["resources"]["limits"]
    assert limits == {"cpu": "3000m", "memory": "5Gi"}
    for template in templates(ALL).values():
        assert template["spec"]["nodeSelector"] == {"pool": "data"}
        assert template["spec"]["tolerations"] == [{"key": "data", "operator": "Exists"}]


def test_the_workers_run_the_image_of_the_pipeline_at_the_default_port():
    container = workers(PLAIN)
    assert container["image"] == IMAGE
    assert container["command"][:3] == [
        "python",
        "-m",
        "apache_beam.runners.worker.worker_pool_main",
    ]
    flink = load_config("sample", environ={}).beam.flink
    host, _, port = flink.worker_pool.partition(":")
    assert host == "localhost"
    assert f"--service_port={port}" in container["command"]
    assert container["readinessProbe"]["tcpSocket"]["port"] == int(port)


def test_the_workers_mount_the_volume_of_the_steps():
    assert "volumeMounts" not in workers(PLAIN)
    pod = templates(ALL)["task manager"]["spec"]
    [volume] = pod["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "reviews"}
    assert workers(ALL)["volumeMounts"] == [{"name": volume["name"], "mountPath": "/mnt/reviews"}]


@both
def test_the_comment_has_settings_of_a_pipeline_that_reach_the_services(overrides):
    text = written(overrides)
    comment = text[: text.index("apiVersion:")]
    settings = re.findall(r"^#   (\S+=\S+)$", comment, re.MULTILINE)
    flink = load_config("sample", settings, {}).beam.flink
    cluster = the(overrides, "FlinkDeployment")
    name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
    # The operator creates this Service.
    assert flink.master == f"{name}-rest.{namespace}:8081"
    service, server = the(overrides, "Service"), the(overrides, "Deployment")
    host, port = flink.job_endpoint.split(":")
    assert host == f"{service['metadata']['name']}.{service['metadata']['namespace']}"
    template = server["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert selects(server["spec"]["selector"], labels)
    [container] = template["spec"]["containers"]
    named = {each["name"]: each["containerPort"] for each in container["ports"]}
    targets = {each["port"]: named[each["targetPort"]] for each in service["spec"]["ports"]}
    assert f"--job-port={targets[int(port)]}" in container["args"]
    assert f"--artifact-port={targets[8098]}" in container["args"]
    assert f"--flink-master={name}-rest:8081" in container["args"]
    assert "beam.runner=flink" in settings
    assert flink.environment == "EXTERNAL"
    slots = int(cluster["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    assert flink.parallelism == cluster["spec"]["taskManager"]["replicas"] * slots
    assert flink.shared_paths == (overrides == ALL)


def test_the_job_server_gives_its_clients_an_address_that_they_reach():
    [container] = templates(PLAIN)["job server"]["spec"]["containers"]
    # It sends the host to its clients: 0.0.0.0 or localhost would be the client's own machine.
    assert "--job-host=$(POD_IP)" in container["args"]
    [address] = [each for each in container["env"] if each["name"] == "POD_IP"]
    assert address["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}


def test_the_heap_of_the_job_server_fits_its_container():
    [container] = templates(ALL)["job server"]["spec"]["containers"]
    assert {"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx1g"} in container["env"]
    assert container["resources"]["limits"]["memory"] == "1536Mi"


@both
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


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ("", "cluster.image"),
        (
            f"{PLAIN},beam.flink.kubernetes.task_manager_memory=1728m",
            "beam.flink.kubernetes.task_manager_memory",
        ),
        (f"{PLAIN},beam.flink.network_memory=2g", "beam.flink.kubernetes.task_manager_memory"),
    ],
)
def test_a_cluster_that_would_not_start_is_refused(overrides, key):
    with pytest.raises(ConfigError, match=f"^{key}: "):
        written(overrides)


def test_a_task_manager_with_the_least_memory_that_flink_accepts_is_not_refused():
    # Flink 1.19 computes its memory from 1729m with these settings, and refuses 1728m.
    assert written(f"{PLAIN},beam.flink.kubernetes.task_manager_memory=1729m")


def test_the_command_writes_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_SET", PLAIN)
    printed = CliRunner().invoke(app, ["flink", "--config", "sample"])
    file = tmp_path / "flink.yaml"
    done = CliRunner().invoke(app, ["flink", "--config", "sample", "--output", str(file)])
    assert (printed.exit_code, done.exit_code) == (0, 0)
    assert printed.stdout == file.read_text() == written(PLAIN)
    # The manifests are readable: they have no YAML anchors.
    assert "&id" not in printed.stdout


@pytest.mark.parametrize(
    "setting",
    [
        "cluster.image=null",
        "beam.flink.kubernetes.name=Words",
        f"beam.flink.kubernetes.name={'w' * 46}",
        "beam.flink.kubernetes.task_managers=0",
        "beam.flink.kubernetes.workers_memory=3GB",
        "beam.flink.kubernetes.task_manager_memory=1g",
    ],
)
def test_the_command_refuses_a_wrong_setting_with_one_line(setting, tmp_path):
    file = tmp_path / "flink.yaml"
    words = ["flink", "--set", PLAIN, "--set", setting, "--output", str(file)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    [line] = done.stderr.splitlines()
    assert setting.partition("=")[0] in line
    assert not file.exists()
