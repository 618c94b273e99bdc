"""The manifests of JobSets and TrainJobs: replicas, pods, policies, and the real CRDs."""

import json
import signal

import pytest

from core import exit_codes
from core.errors import InputError
from platforms.jobs.choice import KINDS
from platforms.jobs.jobset.status import JobSet
from platforms.jobs.kubernetes.pods import Pod
from platforms.jobs.kubernetes.restarts import PERMANENT
from platforms.jobs.trainjob.status import TrainJob
from tests.crd import problems
from tests.kubeflow_files import training_runtime
from tests.platforms.jobs.job_sets import action_for, of_train_job
from tests.platforms.jobs.manifests import (
    ALL_SETTINGS,
    JOB_FILE,
    MULTI_WORKER,
    PARAMETER_SERVER,
    make_job,
    make_settings,
)
from tests.platforms.jobs.training_operator import is_restarted
from tests.pod_security import violations
from trainer_module.cluster import exits
from trainer_module.cluster.tf_config import Cluster, set_tf_config
from trainer_module.loop import preemption

RUNTIME = training_runtime()
TRAININGS = [PARAMETER_SERVER, MULTI_WORKER, {}]
CRDS = {"tfjob": "tfjob-v1.9.0", "trainjob": "trainjob-2026-08", "jobset": "jobset-2026-08"}


def job_set_spec(kind, settings, **training):
    """Return the spec of the JobSet that runs a training, with the name of the JobSet."""
    manifest = kind.make_manifest(make_job(**training), JOB_FILE, settings)
    name = manifest["metadata"]["name"]
    if manifest["kind"] == "JobSet":
        return manifest["spec"], name
    return of_train_job(manifest, {"amazon-reviews": RUNTIME}), name


@pytest.fixture(params=[JobSet(), TrainJob()], ids=lambda kind: kind.name)
def kind(request):
    return request.param


def environ_of(container, index):
    """Return the environment of a pod as Kubernetes sets it."""
    environ = {}
    for each in container["env"]:
        if "valueFrom" in each:
            path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
            assert each["valueFrom"]["fieldRef"]["fieldPath"] == path
            environ[each["name"]] = str(index)
        else:
            environ[each["name"]] = each["value"].replace(
                "$(POD_INDEX)", environ.get("POD_INDEX", "?")
            )
    return environ


@pytest.mark.parametrize("training", [PARAMETER_SERVER, MULTI_WORKER])
def test_every_pod_finds_itself_in_a_cluster_of_stable_host_names(kind, training):
    spec, name = job_set_spec(kind, ALL_SETTINGS, **training)
    found = {}
    for replicated in spec["replicatedJobs"]:
        job = replicated["template"]["spec"]
        for index in range(job["completions"]):
            environ = environ_of(job["template"]["spec"]["containers"][0], index)
            set_tf_config(environ)
            cluster = Cluster.from_environ(environ)
            # <jobset>-<replicated job>-<job index>-<pod index>.<subdomain>
            host = f"{name}-{replicated['name']}-0-{index}.{name}:2222"
            assert cluster.address == host
            found[cluster.name] = cluster.spec
    servers = training.get("parameter_servers", 0)
    workers = 3 if servers else 2
    names = [
        "chief",
        *(f"worker {i}" for i in range(workers)),
        *(f"ps {i}" for i in range(servers)),
    ]
    assert list(found) == names
    assert all(spec == found["chief"] for spec in found.values())


@pytest.mark.parametrize("training", TRAININGS)
def test_only_pods_that_compute_gradients_get_gpus(training):
    spec, _ = job_set_spec(JobSet(), ALL_SETTINGS, **training)
    gpus = {}
    for each in spec["replicatedJobs"]:
        [container] = each["template"]["spec"]["template"]["spec"]["containers"]
        gpus[each["name"]] = container["resources"]["limits"].get("nvidia.com/gpu", "0")
    expected = {
        3: {"chief": "0", "worker": "2", "ps": "0"},
        2: {"chief": "2", "worker": "2"},
        1: {"worker": "2"},
    }
    assert gpus == expected[len(gpus)]


@pytest.mark.parametrize("training", TRAININGS)
def test_each_pod_has_the_configured_resources_and_nodes(kind, training):
    settings = ALL_SETTINGS.model_copy(
        update={"pod": {**ALL_SETTINGS.pod, "terminationGracePeriodSeconds": 15}}
    )
    spec, _ = job_set_spec(kind, settings, **training)
    for each in spec["replicatedJobs"]:
        template = each["template"]["spec"]["template"]
        pod, [container] = template["spec"], template["spec"]["containers"]
        assert container["image"] == "registry/reviews:1"
        assert container["command"] == ["python", "-m", "trainer_module.task", JOB_FILE]
        assert {"name": "PYTHONUNBUFFERED", "value": "1"} in container["env"]
        assert container["resources"]["limits"]["cpu"] == "3500m"
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert pod["terminationGracePeriodSeconds"] == 15
        assert pod["serviceAccountName"] == "trainer"
        assert pod["nodeSelector"] == {"pool": "gpu"}
        assert pod["tolerations"] == ALL_SETTINGS.pod["tolerations"]
        (_, volume), (_, mount) = pod["volumes"], container["volumeMounts"]
        assert volume["persistentVolumeClaim"]["claimName"] == "reviews"
        assert mount == {"name": volume["name"], "mountPath": "/data"}
        assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"


def test_a_field_that_a_trainjob_cannot_set_is_an_error():
    settings = make_settings(pod={"priorityClassName": "high"})
    assert JobSet().make_manifest(make_job(**MULTI_WORKER), JOB_FILE, settings)
    with pytest.raises(InputError, match=r"^kubeflow.training_pod.priorityClassName: a TrainJob"):
        TrainJob().make_manifest(make_job(**MULTI_WORKER), JOB_FILE, settings)


@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings()])
@pytest.mark.parametrize("training", TRAININGS)
def test_every_pod_satisfies_the_restricted_pod_security_standard(kind, training, settings):
    spec, _ = job_set_spec(kind, settings, **training)
    for each in spec["replicatedJobs"]:
        assert violations(each["template"]["spec"]["template"]["spec"]) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings()], ids=["volume", "bucket"])
@pytest.mark.parametrize("training", TRAININGS)
def test_a_training_pod_writes_to_its_temporary_folder_and_the_volume_only(
    kind, settings, training
):
    if kind.name == "tfjob":
        manifest = kind.make_manifest(make_job(**training), JOB_FILE, settings)
        templates = [each["template"] for each in manifest["spec"]["tfReplicaSpecs"].values()]
    else:
        spec, _ = job_set_spec(kind, settings, **training)
        templates = [each["template"]["spec"]["template"] for each in spec["replicatedJobs"]]
    for template in templates:
        [container] = template["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        volumes = {each["name"]: each for each in template["spec"]["volumes"]}
        mounts = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
        assert mounts.pop("/tmp")["emptyDir"] == {}
        assert list(mounts) == ([settings.volume_mount] if settings.volume_claim else [])
        assert len(volumes) == 1 + len(mounts)


def test_the_chief_decides_the_success_and_an_error_the_failure(kind):
    spec, _ = job_set_spec(kind, ALL_SETTINGS, **PARAMETER_SERVER)
    [chief] = spec["successPolicy"]["targetReplicatedJobs"]
    assert chief == spec["replicatedJobs"][0]["name"]
    [rule] = spec["failurePolicy"]["rules"]
    assert (rule["action"], rule["onJobFailureReasons"][0]) == ("FailJobSet", "PodFailurePolicy")
    for each in spec["replicatedJobs"]:
        job = each["template"]["spec"]
        rules = job["podFailurePolicy"]["rules"]
        assert rules[0] == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
        [container] = job["template"]["spec"]["containers"]
        for rule in rules[1:]:
            # Kubernetes requires an order, no duplicates, and no 0.
            values = rule["onExitCodes"]["values"]
            assert values == sorted({*values}) and values[0] > 0 and len(values) <= 255
            assert rule["onExitCodes"]["containerName"] == container["name"]
    if kind.name == "trainjob":
        assert job["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_exit_code_has_the_same_meaning_for_the_manifest_and_for_the_step(kind):
    """The step must neither wait for a replica that is not restarted, nor blame one that is."""
    if kind.name == "tfjob":
        manifest = kind.make_manifest(make_job(), JOB_FILE, make_settings())
        [replicas] = manifest["spec"]["tfReplicaSpecs"].values()
        assert replicas["restartPolicy"] == "ExitCode"
        jobs = []
    else:
        spec, _ = job_set_spec(kind, make_settings(), **PARAMETER_SERVER)
        jobs = [each["template"]["spec"] for each in spec["replicatedJobs"]]
    for code in range(1, 256):
        state = {"terminated": {"exitCode": code}}
        pod = {
            "metadata": {"name": "pod", "uid": "1"},
            "status": {
                "phase": "Failed",
                "conditions": [],
                "containerStatuses": [{"name": kind.container, "state": state}],
            },
        }
        permanent = Pod.read(pod, "chief", kind.container).failed_permanently
        assert permanent == (code in PERMANENT) == (not is_restarted(code)), code
        for job in jobs:
            assert action_for(pod, job) == ("FailJob" if permanent else "Ignore"), code


def test_the_exit_codes_of_a_training_are_restarted_where_a_restart_helps():
    assert {exit_codes.FAILED, exit_codes.BAD_INPUT} <= {*PERMANENT}
    killed = [128 + number for number in (signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV)]
    assert not {exits.LOST_PEER, preemption.EXIT_CODE, *killed} & {*PERMANENT}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_queue_is_a_label_of_the_job(kind):
    label = "kueue.x-k8s.io/queue-name"
    manifest = kind.make_manifest(make_job(), JOB_FILE, make_settings(queue="team-a"))
    assert manifest["metadata"]["labels"][label] == "team-a"
    manifest = kind.make_manifest(make_job(), JOB_FILE, make_settings())
    assert label not in manifest["metadata"]["labels"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_job_ends_at_its_timeout(kind):
    spec = kind.make_manifest(make_job(), JOB_FILE, make_settings())["spec"]
    assert '"activeDeadlineSeconds": 3601' in json.dumps(spec)


@pytest.mark.real_data
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("settings", [ALL_SETTINGS, make_settings(queue="team-a")])
@pytest.mark.parametrize("training", [PARAMETER_SERVER, {}])
def test_the_real_crd_accepts_the_manifest(real_data, kind, training, settings):
    crd = real_data / "crds" / f"{CRDS[kind.name]}.yaml"
    assert problems(kind.make_manifest(make_job(**training), JOB_FILE, settings), crd) == []
