"""The manifests of training jobs: replicas, pods, policies, exit codes, and the real CRDs."""

import re

import pytest
import yaml

from core import exit_codes
from platforms.kubeflow.checks import TRAINJOB_FIELDS
from platforms.training_jobs.job import job_name
from platforms.training_jobs.kinds import JOBSET, KINDS, TFJOB, TRAINJOB, replicas
from platforms.training_jobs.manifests import PERMANENT
from platforms.training_jobs.pods import Pod
from tests.crd import problems
from tests.platforms.training_jobs.manifests import (
    ALL_SETTINGS,
    JOB_FILE,
    MULTI_WORKER,
    PARAMETER_SERVER,
    job_set_of,
    jobs_of,
    make_job,
    make_settings,
    pod_with,
)
from tests.pod_security import violations
from trainer_module.cluster import exits
from trainer_module.cluster.tf_config import Cluster, set_tf_config

CRDS = {"tfjob": "tfjob-v1.9.0", "trainjob": "trainjob-2026-08", "jobset": "jobset-2026-08"}
all_kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
with_job_set = pytest.mark.parametrize("kind", [JOBSET, TRAINJOB], ids=lambda kind: kind.name)


def manifest_of(kind, settings=ALL_SETTINGS, **training):
    return kind.make_manifest(make_job(**training), JOB_FILE, settings)


def environ_of(container, index):
    """Return the environment of a pod as Kubernetes sets it."""
    path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    environ = {}
    for each in container["env"]:
        if "valueFrom" in each:
            assert each["valueFrom"]["fieldRef"]["fieldPath"] == path
        value = each.get("value", str(index))
        environ[each["name"]] = value.replace("$(POD_INDEX)", environ.get("POD_INDEX", "?"))
    return environ


@with_job_set
@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER])
def test_every_pod_finds_itself_in_a_cluster_of_stable_host_names(kind, training):
    manifest = manifest_of(kind, **training)
    name = manifest["metadata"]["name"]
    found = {}
    for group, job, template in jobs_of(manifest):
        for index in range(job["completions"]):
            environ = environ_of(template["spec"]["containers"][0], index)
            set_tf_config(environ)
            cluster = Cluster.from_environ(environ)
            # <jobset>-<replicated job>-<job index>-<pod index>.<subdomain>
            assert (
                cluster.spec[cluster.task_type][cluster.task_index]
                == f"{name}-{group}-0-{index}.{name}:2222"
            )
            found[cluster.name] = cluster.spec
    servers = training.get("parameter_servers", 0)
    workers = [f"worker {i}" for i in range(3 if servers else 2)]
    assert list(found) == ["chief", *workers, *(f"ps {i}" for i in range(servers))]
    assert list(found) == replicas(manifest)
    assert all(spec == found["chief"] for spec in found.values())


@pytest.mark.parametrize("kind", [TFJOB, JOBSET], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("training", "expected"),
    [
        (PARAMETER_SERVER, {"chief": (1, "0"), "worker": (3, "2"), "ps": (2, "0")}),
        (MULTI_WORKER, {"chief": (1, "2"), "worker": (2, "2")}),
    ],
)
def test_replicas_and_their_gpus_follow_the_strategy(kind, training, expected):
    found = {}
    for task, job, template in jobs_of(manifest_of(kind, **training)):
        limits = template["spec"]["containers"][0]["resources"]["limits"]
        count = job["replicas" if kind.name == "tfjob" else "completions"]
        found[task] = (count, limits.get("nvidia.com/gpu", "0"))
    assert found == expected


@all_kinds
def test_each_pod_has_the_configured_resources_and_nodes(kind):
    for _, _, template in jobs_of(manifest_of(kind, **PARAMETER_SERVER)):
        pod, [container] = template["spec"], template["spec"]["containers"]
        assert container["name"] == kind.container
        assert container["image"] == "registry/reviews:1"
        assert container["command"] == ["python", "-m", "trainer_module.task", JOB_FILE]
        assert {"name": "PYTHONUNBUFFERED", "value": "1"} in container["env"]
        limits = container["resources"]["limits"]
        assert (limits["cpu"], limits["memory"]) == ("3.5", "16Gi")
        assert container["resources"]["requests"] == limits
        assert pod["serviceAccountName"] == "trainer"
        assert ALL_SETTINGS.pod.items() <= pod.items()
        # Istio's proxy would block the connections between the processes of the cluster.
        for notes in (template["metadata"]["annotations"], template["metadata"]["labels"]):
            assert notes["sidecar.istio.io/inject"] == "false"


@all_kinds
@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings()], ids=["volume", "bucket"])
def test_a_pod_is_restricted_and_writes_to_its_temporary_folder_and_the_volume_only(kind, settings):
    for _, _, template in jobs_of(manifest_of(kind, settings, **PARAMETER_SERVER)):
        pod, [container] = template["spec"], template["spec"]["containers"]
        assert violations(pod) == []
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        volumes = {each["name"]: each for each in pod["volumes"]}
        mounts = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
        assert mounts.pop("/tmp")["emptyDir"] == {}
        claims = {path: each["persistentVolumeClaim"]["claimName"] for path, each in mounts.items()}
        assert claims == ({"/data": "reviews"} if settings.volume_claim else {})
        assert len(volumes) == 1 + len(mounts)


@all_kinds
def test_without_settings_the_cluster_decides(kind):
    _, _, template = jobs_of(manifest_of(kind, make_settings(), **MULTI_WORKER))[0]
    assert template["spec"]["containers"][0].get("resources", {}) == {}
    assert not {"serviceAccountName", "nodeSelector", "tolerations"} & set(template["spec"])
    # Time to save a checkpoint after SIGTERM.
    assert template["spec"]["terminationGracePeriodSeconds"] == 60


@all_kinds
def test_the_volumes_of_the_user_are_added(kind):
    own = {"name": "own", "emptyDir": {}}
    for volumes, expected in (([own], {"scratch", "own"}), (None, {"scratch"})):
        settings = make_settings(pod={"volumes": volumes})
        _, _, template = jobs_of(manifest_of(kind, settings, **MULTI_WORKER))[0]
        assert {each["name"] for each in template["spec"]["volumes"]} == expected


@all_kinds
@pytest.mark.parametrize("own", [{"fsGroup": 1000}, {"runAsUser": 1000}, None])
def test_the_security_context_of_the_user_is_added_to_the_restrictions(kind, own):
    settings = make_settings(pod={"securityContext": own})
    for _, _, template in jobs_of(manifest_of(kind, settings, **PARAMETER_SERVER)):
        assert violations(template["spec"]) == []
        assert (own or {}).items() <= template["spec"]["securityContext"].items()


@with_job_set
def test_the_chief_decides_the_success_and_an_error_the_failure(kind):
    manifest = manifest_of(kind, **PARAMETER_SERVER)
    spec = manifest["spec"] if kind.name == "jobset" else job_set_of(manifest)
    [chief] = spec["successPolicy"]["targetReplicatedJobs"]
    assert chief == spec["replicatedJobs"][0]["name"]
    [rule] = spec["failurePolicy"]["rules"]
    assert (rule["action"], rule["onJobFailureReasons"][0]) == ("FailJobSet", "PodFailurePolicy")
    for _, job, _ in jobs_of(manifest):
        assert job["podFailurePolicy"]["rules"][0]["onPodConditions"]
        assert kind.name == "jobset" or job["successPolicy"]["rules"] == [{"succeededIndexes": "0"}]


def action_for(code, job, container):
    """Return the action of the first rule of a Job's pod failure policy for an exit code."""
    for rule in job["podFailurePolicy"]["rules"][1:]:
        wanted = rule["onExitCodes"]
        # Kubernetes requires an order, no duplicates, and no 0.
        assert wanted["values"] == sorted({*wanted["values"]}) and wanted["values"][0] > 0
        assert len(wanted["values"]) <= 255 and wanted["containerName"] == container
        if (code in wanted["values"]) == (wanted["operator"] == "In"):
            return rule["action"]
    return "Count"


@all_kinds
def test_each_exit_code_has_the_same_meaning_for_the_manifest_and_for_the_step(kind):
    """The step must neither wait for a replica that is not restarted, nor blame one that is."""
    for _, job, _ in jobs_of(manifest_of(kind, **PARAMETER_SERVER)):
        for code in range(1, 256):
            permanent = Pod.read(pod_with(code, kind.container), "", kind.container)
            assert permanent.failed_permanently == (code < 128), code
            if kind.name == "tfjob":
                assert job["restartPolicy"] == "ExitCode"
            else:
                action = "FailJob" if code < 128 else "Ignore"
                assert action_for(code, job, kind.container) == action, code
    assert {exit_codes.FAILED, exit_codes.BAD_INPUT} <= {*PERMANENT}
    assert not {exits.LOST_PEER, exits.ENDED_BY_SIGTERM} & {*PERMANENT}


@all_kinds
def test_a_job_has_its_queue_and_its_timeout(kind):
    label = "kueue.x-k8s.io/queue-name"
    manifest = manifest_of(kind, make_settings(queue="team-a"), **MULTI_WORKER)
    assert manifest["metadata"]["labels"][label] == "team-a"
    assert label not in manifest_of(kind, **MULTI_WORKER)["metadata"]["labels"]
    assert "'activeDeadlineSeconds': 3601" in str(manifest["spec"])


def test_a_retried_step_has_the_same_name_and_another_execution_another_one():
    name = job_name(make_job())
    assert name == job_name(make_job(epochs=2))
    assert name != job_name(make_job(serving_model_dir="gs://bucket/model/8/Format-Serving"))
    moved = make_job().model_copy(update={"checkpoint_dir": "gs://bucket/checkpoints/fedc"})
    assert name != job_name(moved)
    # The services of pods such as NAME-worker-10 have DNS labels for names.
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,38}[a-z0-9]", name)


@all_kinds
def test_the_replica_of_a_pod_is_in_its_labels(kind):
    manifest = manifest_of(kind, **PARAMETER_SERVER)
    labels = {kind.index_label: "1" if kind.task_label else "5", kind.task_label: "ps"}
    assert kind.find_replica({"metadata": {"labels": labels}}, manifest) == "ps 1"
    # Such as a pod that an administrator added to the job by its label.
    assert kind.find_replica({"metadata": {}}, manifest) not in replicas(manifest)


@pytest.mark.real_data
@all_kinds
@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings(queue="team-a")])
@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER])
def test_the_real_crd_accepts_the_manifest(real_data, kind, training, settings):
    crd = real_data / "crds" / f"{CRDS[kind.name]}.yaml"
    assert problems(manifest_of(kind, settings, **training), crd) == []


@pytest.mark.real_data
def test_the_fields_that_a_trainjob_can_set_are_those_of_its_crd(real_data):
    crd = yaml.safe_load((real_data / "crds" / f"{CRDS['trainjob']}.yaml").read_text())
    found = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    path = "spec runtimePatches . trainingRuntimeSpec template spec replicatedJobs . template spec"
    for name in f"{path} template spec".split():
        found = found["items"] if name == "." else found["properties"][name]
    assert sorted(found["properties"]) == sorted(TRAINJOB_FIELDS)
