"""The TFJob of a training: its replicas, their resources, and the validation by the real CRD."""

import re

import pytest

from platforms.jobs.step import job_name
from platforms.jobs.tfjob.manifest import make_manifest
from tests.crd import problems
from tests.platforms.jobs.manifests import (
    ALL_SETTINGS,
    JOB_FILE,
    MULTI_WORKER,
    PARAMETER_SERVER,
    make_job,
    make_settings,
)
from tests.pod_security import violations

SHAPES = [
    (PARAMETER_SERVER, {"Chief": (1, 0), "Worker": (3, 2), "PS": (2, 0)}),
    (MULTI_WORKER, {"Chief": (1, 2), "Worker": (2, 2)}),
    ({"strategy": "multi_worker_mirrored"}, {"Worker": (1, 2)}),
    ({"strategy": "mirrored", "devices": 2}, {"Worker": (1, 2)}),
]


def replicas(manifest):
    return manifest["spec"]["tfReplicaSpecs"]


def pod_and_container(replica):
    pod = replica["template"]["spec"]
    [container] = pod["containers"]
    return pod, container


@pytest.mark.parametrize(("training", "expected"), SHAPES)
def test_replicas_and_their_gpus_follow_the_strategy(training, expected):
    manifest = make_manifest(make_job(**training), JOB_FILE, ALL_SETTINGS)
    found = {}
    for kind, replica in replicas(manifest).items():
        _, container = pod_and_container(replica)
        gpus = int(container["resources"]["limits"].get("nvidia.com/gpu", 0))
        found[kind] = (replica["replicas"], gpus)
    assert found == expected


@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER, {}])
def test_each_pod_runs_the_training_with_the_configured_resources(training):
    settings = ALL_SETTINGS.model_copy(
        update={"pod": {**ALL_SETTINGS.pod, "terminationGracePeriodSeconds": 15}}
    )
    manifest = make_manifest(make_job(**training), JOB_FILE, settings)
    for replica in replicas(manifest).values():
        assert replica["restartPolicy"] == "ExitCode"
        pod, container = pod_and_container(replica)
        assert container["name"] == "tensorflow"
        assert container["image"] == "registry/reviews:1"
        assert container["command"] == ["python", "-m", "trainer_module.task", JOB_FILE]
        assert container["env"] == [{"name": "PYTHONUNBUFFERED", "value": "1"}]
        resources = container["resources"]
        assert resources["requests"] == resources["limits"]
        assert resources["limits"]["cpu"] == "3500m"
        assert resources["limits"]["memory"] == "16Gi"
        assert pod["terminationGracePeriodSeconds"] == 15
        assert pod["serviceAccountName"] == "trainer"
        assert pod["nodeSelector"] == {"pool": "gpu"}
        assert pod["tolerations"] == ALL_SETTINGS.pod["tolerations"]
        (_, volume), (_, mount) = pod["volumes"], container["volumeMounts"]
        assert volume["persistentVolumeClaim"]["claimName"] == "reviews"
        assert mount == {"name": volume["name"], "mountPath": "/data"}
        # Istio's proxy would block the connections between the processes of the cluster.
        metadata = replica["template"]["metadata"]
        for notes in (metadata["annotations"], metadata["labels"]):
            assert notes["sidecar.istio.io/inject"] == "false"


@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings()])
@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER, {}])
def test_every_pod_satisfies_the_restricted_pod_security_standard(training, settings):
    manifest = make_manifest(make_job(**training), JOB_FILE, settings)
    for replica in replicas(manifest).values():
        assert violations(replica["template"]["spec"]) == []


def test_the_check_of_the_standard_finds_violations():
    [worker] = replicas(make_manifest(make_job(), JOB_FILE, ALL_SETTINGS)).values()
    pod, container = pod_and_container(worker)
    pod["hostNetwork"] = True
    pod["volumes"].append({"name": "node", "hostPath": {"path": "/"}})
    pod["securityContext"] = {"runAsUser": 0}
    container["securityContext"] = {"capabilities": {"add": ["SYS_ADMIN"]}, "privileged": True}
    container["ports"] = [{"containerPort": 2222, "hostPort": 2222}]
    found = "\n".join(violations(pod))
    for each in (
        "hostNetwork=true",
        'volume "node" uses "hostPath"',
        "runAsNonRoot != true",
        "runAsUser=0",
        "seccompProfile",
        "allowPrivilegeEscalation != false",
        'must set capabilities.drop=["ALL"]',
        'must not include "SYS_ADMIN"',
        "privileged",
        "hostPort",
    ):
        assert each in found


def test_without_settings_the_cluster_decides():
    manifest = make_manifest(make_job(), JOB_FILE, make_settings())
    pod, container = pod_and_container(replicas(manifest)["Worker"])
    assert container["resources"] == {}
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/tmp"]
    assert not {"serviceAccountName", "nodeSelector", "tolerations"} & set(pod)


def test_another_gpu_is_requested_by_its_resource_name():
    settings = make_settings(gpus=1, gpu_type="amd.com/gpu")
    manifest = make_manifest(make_job(), JOB_FILE, settings)
    _, container = pod_and_container(replicas(manifest)["Worker"])
    assert container["resources"]["limits"] == {"amd.com/gpu": "1"}


@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings()])
@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER, {}])
def test_every_pod_has_a_minute_to_save_a_checkpoint(training, settings):
    manifest = make_manifest(make_job(**training), JOB_FILE, settings)
    for replica in replicas(manifest).values():
        pod, _ = pod_and_container(replica)
        assert pod["terminationGracePeriodSeconds"] == 60


def test_the_operator_ends_a_job_that_takes_too_long_and_keeps_failed_pods_for_a_day():
    manifest = make_manifest(make_job(), JOB_FILE, make_settings())
    assert manifest["metadata"]["namespace"] == "ml"
    assert manifest["metadata"]["name"] == job_name(make_job())
    policy = manifest["spec"]["runPolicy"]
    assert policy["activeDeadlineSeconds"] == 3601
    assert policy["cleanPodPolicy"] == "Running"
    assert policy["ttlSecondsAfterFinished"] == 24 * 3600
    # With 0 the operator would not restart a pod that was preempted.
    assert policy["backoffLimit"] > 0


def test_a_retried_step_has_the_same_name_and_another_execution_another_one():
    name = job_name(make_job())
    assert name == job_name(make_job(epochs=2))
    assert name != job_name(make_job(serving_model_dir="gs://bucket/model/8/Format-Serving"))
    moved = make_job().model_copy(update={"checkpoint_dir": "gs://bucket/checkpoints/fedc"})
    assert name != job_name(moved)
    # The services of pods such as NAME-worker-10 have DNS labels for names.
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,38}[a-z0-9]", name)


@pytest.mark.parametrize(
    "wrong",
    [{"image": ""}, {"gpus": -1}, {"timeout_seconds": 0}, {"poll_seconds": 0.0}, {"gpu": 1}],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_settings(**wrong)


@pytest.fixture
def crd(real_data):
    return real_data / "crds" / "tfjob-v1.9.0.yaml"


@pytest.mark.real_data
@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings()])
@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER, {}])
def test_the_real_crd_accepts_the_manifest(crd, training, settings):
    assert problems(make_manifest(make_job(**training), JOB_FILE, settings), crd) == []


@pytest.mark.real_data
def test_the_check_against_the_crd_finds_errors(crd):
    manifest = make_manifest(make_job(), JOB_FILE, ALL_SETTINGS)
    manifest["spec"]["runPolicy"]["backoffLimit"] = "3"
    worker = manifest["spec"]["tfReplicaSpecs"]["Worker"]
    worker["restart"] = "Never"
    _, container = pod_and_container(worker)
    container["resources"]["limits"]["memory"] = "much"
    del container["name"]
    found = "\n".join(problems(manifest, crd))
    for each in ("backoffLimit: '3' is no integer", "restart is unknown", "much does not fit"):
        assert each in found
    assert "containers[0].name is missing" in found
