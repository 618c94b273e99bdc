"""The Flink cluster that `amazon-reviews flink` writes for Kubernetes."""

from __future__ import annotations

import copy
import re

import pytest
from typer.testing import CliRunner

from cli.app import app
from core.errors import ConfigError
from pipeline.config import load_config
from tests import core_kinds, crd
from tests.platforms.kubeflow.flink_objects import (
    ALL,
    BOTH,
    PLAIN,
    objects,
    selects,
    templates,
    the,
    workers,
    written,
)
from tests.platforms.settings import IMAGE
from tests.pod_security import violations

FLINK_CRD = "flinkdeployment-2026-07.yaml"
NEWEST = (
    "beam.flink.kubernetes.image=flink:2.0-java17",
    "beam.flink.kubernetes.flink_version=v2_0",
    "beam.flink.kubernetes.job_server_image=apache/beam_flink2.0_job_server:2.74.0",
)
"""The newest Flink that Beam 2.74 supports."""


@pytest.mark.real_data
@BOTH
def test_the_real_crd_accepts_the_cluster(real_data, overrides):
    file = real_data / "crds" / FLINK_CRD
    assert crd.problems(the(overrides, "FlinkDeployment"), file) == []


@pytest.mark.real_data
def test_another_flink_is_three_settings(real_data):
    cluster = the(",".join((PLAIN, *NEWEST)), "FlinkDeployment")
    assert cluster["spec"]["image"] == "flink:2.0-java17"
    assert cluster["spec"]["flinkVersion"] == "v2_0"
    assert crd.problems(cluster, real_data / "crds" / FLINK_CRD) == []
    [server] = templates(",".join((PLAIN, *NEWEST)))["job server"]["spec"]["containers"]
    assert server["image"] == "apache/beam_flink2.0_job_server:2.74.0"


@pytest.mark.real_data
def test_the_check_against_the_crd_finds_wrong_fields(real_data):
    wrong = the(PLAIN, "FlinkDeployment")
    wrong["spec"]["flinkVersion"] = "1.19"
    wrong["spec"]["taskManagers"] = wrong["spec"].pop("taskManager")
    wrong["spec"]["jobManager"]["replicas"] = "1"
    found = "\n".join(crd.problems(wrong, real_data / "crds" / FLINK_CRD))
    for each in ("'1.19' is none of", "taskManagers is unknown", "'1' is no integer"):
        assert each in found


@BOTH
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


@BOTH
@pytest.mark.parametrize("of", ["job manager", "task manager", "job server"])
def test_every_pod_satisfies_the_restricted_pod_security_standard(overrides, of):
    pod = templates(overrides)[of]["spec"]
    assert violations(pod) == []
    for container in pod["containers"]:
        # Only our own image starts with a user id other than root's.
        if container.get("image") != IMAGE:
            assert container["securityContext"]["runAsUser"] > 0


@BOTH
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
    strategy = "restart-strategy.exponential-delay"
    assert flink["restart-strategy.type"] == "exponential-delay"
    assert flink[f"{strategy}.attempts-before-reset-backoff"] == "7"
    assert flink[f"{strategy}.initial-backoff"] == flink[f"{strategy}.max-backoff"] == "10 s"
    assert flink["env.java.opts.taskmanager"] == "-XX:+ExitOnOutOfMemoryError"
    # The Python workers access the buckets of the pipeline.
    assert flink["kubernetes.taskmanager.service-account"] == "runner"
    assert "classloader.resolve-order" not in flink
    limits = workers(ALL)["resources"]["limits"]
    assert limits == {"cpu": "3000m", "memory": "5Gi"}
    for template in templates(ALL).values():
        assert template["spec"]["nodeSelector"] == {"pool": "data"}
        assert template["spec"]["tolerations"] == [{"key": "data", "operator": "Exists"}]


def test_without_restarts_a_failure_ends_the_job():
    flink = the(f"{PLAIN},beam.flink.kubernetes.restarts=0", "FlinkDeployment")["spec"]
    found = {key: value for key, value in flink["flinkConfiguration"].items() if "restart" in key}
    assert found == {"restart-strategy.type": "none"}


def test_the_workers_run_the_image_of_the_pipeline_at_the_default_port():
    container = workers(PLAIN)
    assert container["image"] == IMAGE
    flink = load_config("sample", environ={}).beam.flink
    host, _, port = flink.worker_pool.partition(":")
    assert host == "localhost"
    assert container["command"] == [
        "python",
        "-m",
        "core.flink.pool",
        f"[::]:{port}",
        "--worker=/opt/venv/bin/amazon-reviews-beam-worker",
    ]
    assert container["readinessProbe"]["tcpSocket"]["port"] == int(port)


def test_the_workers_mount_the_volume_of_the_steps():
    assert "volumeMounts" not in workers(PLAIN)
    pod = templates(ALL)["task manager"]["spec"]
    [volume] = pod["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "reviews"}
    assert workers(ALL)["volumeMounts"] == [{"name": volume["name"], "mountPath": "/mnt/reviews"}]


@BOTH
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


def test_the_job_server_gives_its_clients_an_address_that_they_reach():
    [container] = templates(PLAIN)["job server"]["spec"]["containers"]
    # It sends the host to its clients: 0.0.0.0 or localhost would be the client's own machine.
    assert "--job-host=$(POD_IP)" in container["args"]
    [address] = [each for each in container["env"] if each["name"] == "POD_IP"]
    assert address["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}


def test_the_heap_of_the_job_server_fits_its_container():
    [container] = templates(ALL)["job server"]["spec"]["containers"]
    [options] = [each["value"] for each in container["env"] if each["name"] == "JAVA_TOOL_OPTIONS"]
    assert options.split() == ["-Xmx1g", "-XX:+ExitOnOutOfMemoryError"]
    assert container["resources"]["limits"]["memory"] == "1536Mi"


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ("", "cluster.image"),
        (
            f"{PLAIN},beam.flink.kubernetes.task_manager_memory=1728m",
            "beam.flink.kubernetes.task_manager_memory",
        ),
        (f"{PLAIN},beam.flink.network_memory=2g", "beam.flink.kubernetes.task_manager_memory"),
        (f"{PLAIN},{NEWEST[1]}", "beam.flink.kubernetes.job_server_image"),
        (f"{PLAIN},{NEWEST[2]}", "beam.flink.kubernetes.job_server_image"),
        (f"{PLAIN},{NEWEST[0]}", "beam.flink.kubernetes.image"),
        (f"{PLAIN},{NEWEST[1]},{NEWEST[2]}", "beam.flink.kubernetes.image"),
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
