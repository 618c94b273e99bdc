"""Jobs whose pods do not start: the reported reason and remedy, and the end of the step."""

import re

import pytest

from core.errors import InputError
from platforms.jobs import refusals as job_refusals
from platforms.jobs.follow import JobFailed
from tests.platforms.jobs.ground import in_background, lines
from tests.platforms.jobs.kubernetes_http import forbidden, status
from tests.pod_security import refusal
from tests.waiting import wait

QUOTA = "exceeded quota: pods, requested: pods=1, used: pods=4, limited: pods=4"
ACCOUNT = 'error looking up service account ml/trainer: serviceaccount "trainer" not found'
SECURITY = 'violates PodSecurity "restricted:latest": seccompProfile (pod or container "proxy")'
WEBHOOK = 'admission webhook "policy.example.com" denied the request: no such team'


def warnings(log):
    return [each.getMessage() for each in log.records if each.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        (ACCOUNT, "create the service account, or change kubeflow.service_account"),
        (SECURITY, "a webhook of this cluster changes them"),
        ("failed quota: q: must specify limits.cpu", "set cluster.resources.Trainer.cpu"),
        ("maximum memory usage per Container is 1Gi, but limit is 2Gi", "LimitRange"),
        ('no PriorityClass with name "x" was found', "see kubectl describe"),
    ],
    ids=["service account", "pod security", "resources", "limit range", "anything else"],
)
def test_a_refused_pod_is_reported_and_ends_the_step(ground, log, why, remedy):
    ground.server.admission = lambda name, spec: why
    with pytest.raises(JobFailed) as caught:
        ground.run("print('I am', me)", refused_seconds=0.5)
    message = str(caught.value)
    assert re.match(
        f"{ground.kind.title} amazon-reviews-[0-9a-f]{{16}} in namespace ml: chief is", message
    )
    assert why in message and remedy in message and len(message.splitlines()) == 1
    assert message.endswith("minutes")
    # The log has the reason after the first poll.
    assert [line for line in warnings(log) if why in line and remedy in line]
    # No step would follow the job if its pods started later.
    wait(lambda: not ground.jobs)


def test_a_webhook_that_denies_the_pods_ends_the_step(ground):
    """Its message names no pod, so it concerns all of them."""
    ground.server.admission = lambda name, spec: WEBHOOK
    refused = f"chief, worker 0 is refused by Kubernetes: {WEBHOOK}; a policy of this cluster"
    with pytest.raises(JobFailed, match=re.escape(refused)):
        ground.run(refused_seconds=0.5)
    wait(lambda: not ground.jobs)


def test_a_job_that_is_denied_is_an_error_without_a_retry(ground):
    ground.server.fail("POST", ground.path, (403, status(403, WEBHOOK)), "always")
    denied = f"Kubernetes refuses to create {ground.kind.plural} in namespace ml: 403 {WEBHOOK}"
    with pytest.raises(InputError, match=re.escape(denied)):
        ground.run()
    assert len(ground.server.find_requests("POST", ground.path)) == 1


def test_the_pods_of_a_training_start_where_the_restricted_standard_is_enforced(ground, log):
    ground.server.admission = lambda name, spec: refusal(spec)
    # A chief that ends also ends the other pods, so it ends last.
    script = "print('I am', me)\nwait_for('end')"
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: {"[chief] I am chief 0", "[worker 0] I am worker 0"} <= set(lines(log)))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert ground.server.events == []


def test_a_quota_is_reported_and_does_not_end_the_step(ground, log):
    ground.server.admission = lambda name, spec: QUOTA if ground.is_worker(name) else None
    script = "print('I am', me)\nwait_for('end')"
    thread, raised = in_background(lambda: ground.run(script, refused_seconds=0.2))
    wait(lambda: [line for line in warnings(log) if "worker 0 is refused" in line])
    [line] = [line for line in warnings(log) if "worker 0 is refused" in line]
    assert QUOTA in line and "starts when the quota allows it" in line
    polls = len(ground.server.find_requests("GET", ground.path))
    wait(lambda: len(ground.server.find_requests("GET", ground.path)) > polls + 10)
    ground.server.admission = lambda name, spec: None
    wait(lambda: "[worker 0] I am worker 0" in lines(log))
    ground.release("end")
    thread.join(120)
    assert raised == []


def test_the_error_of_a_timeout_contains_an_exceeded_quota(ground):
    ground.server.admission = lambda name, spec: QUOTA
    with pytest.raises(JobFailed, match=f"did not end within .*chief is refused .*{QUOTA}"):
        ground.run(timeout_seconds=1.0)


def test_a_replica_that_is_restarted_may_be_refused_too(ground, log):
    script = (
        "mark = os.path.join(FOLDER, 'mark')\n"
        "if me == 'worker 0' and not os.path.exists(mark):\n"
        "    open(mark, 'w')\n"
        "    wait_for('kill')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "wait_for('end')"
    )
    thread, raised = in_background(lambda: ground.run(script, refused_seconds=0.5))
    wait(lambda: len(ground.operator.running) == 2)
    ground.server.admission = lambda name, spec: ACCOUNT
    ground.release("kill")
    thread.join(120)
    [error] = raised
    assert isinstance(error, JobFailed)
    assert "worker 0 is refused by Kubernetes" in str(error) and ACCOUNT in str(error)


def test_an_old_refusal_does_not_concern_a_restarted_replica(quiet, log):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.jobs
    name = job["metadata"]["name"]
    pods = [quiet.server.add_pod(job, "chief", 0), quiet.server.add_pod(job, "worker", 0)]
    worker = pods[1]["metadata"]["name"]
    owner = quiet.server.owner_of(job, "worker")
    quiet.server.warn(owner, "FailedCreatePod", f'Error creating: pods "{worker}" is no')
    quiet.server.events[0]["lastTimestamp"] = "2026-01-01T00:00:00Z"
    for pod in pods:
        quiet.server.start_pod(pod)
    quiet.server.set_condition(name, "Running", "is running.")
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    wait(lambda: len(quiet.server.find_requests("GET", "/pods")) > 1)
    quiet.server.remove_pod(worker)
    wait(lambda: len(quiet.server.find_requests("GET", "/events")) > 3)
    quiet.server.set_condition(name, "Succeeded", "successfully completed.")
    thread.join(120)
    assert raised == []
    assert not any("is refused" in line for line in warnings(log))


def test_a_refused_service_is_reported_for_the_job(quiet, log):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.jobs
    why = f'services "{job["metadata"]["name"]}-chief-0" is forbidden: exceeded quota: services'
    # Kubeflow Trainer creates a JobSet of the same name.
    about = job if job["kind"] == "TFJob" else {**job, "kind": "JobSet"}
    tfjob = about["kind"] == "TFJob"
    reason = "FailedCreateService" if tfjob else "HeadlessServiceCreationFailed"
    quiet.server.warn(about, reason, f"Error creating: {why}")
    quiet.server.start_pod(quiet.server.add_pod(job, "chief", 0))
    with pytest.raises(
        JobFailed, match=f"the {quiet.kind.title} is refused by Kubernetes: services"
    ):
        quiet.run_manifest(manifest, timeout_seconds=0.5)


def waiting(reason, message=""):
    return {"name": "tensorflow", "state": {"waiting": {"reason": reason, "message": message}}}


def unscheduled(message, reason="Unschedulable"):
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
    }


@pytest.mark.parametrize(
    ("status", "why", "remedy"),
    [
        (
            {"containerStatuses": [waiting("ImagePullBackOff", 'Back-off pulling "x:1"')]},
            'ImagePullBackOff: Back-off pulling "x:1"',
            "check cluster.image",
        ),
        (
            {"containerStatuses": [waiting("CreateContainerConfigError", "image runs as root")]},
            "CreateContainerConfigError: image runs as root",
            "see kubectl describe",
        ),
        (
            {"conditions": [unscheduled('persistentvolumeclaim "reviews" not found')]},
            'Unschedulable: persistentvolumeclaim "reviews" not found',
            "create the PersistentVolumeClaim, or change kubeflow.volume",
        ),
        (
            {"initContainerStatuses": [waiting("ErrImagePull", "no such proxy")]},
            "ErrImagePull: no such proxy",
            "check cluster.image",
        ),
    ],
    ids=["image", "container", "volume", "init container"],
)
def test_a_pod_that_cannot_run_ends_the_step(quiet, log, status, why, remedy):
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.jobs
    quiet.server.add_pod(job, "worker", 0)["status"] |= status
    with pytest.raises(JobFailed) as caught:
        quiet.run_manifest(manifest, refused_seconds=0.2)
    assert f"worker 0 does not run yet: {why}; {remedy}" in str(caught.value)
    assert quiet.jobs == []


@pytest.mark.parametrize(
    ("reason", "why", "remedy"),
    [
        (
            "Unschedulable",
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
            "kubeflow.training_pod",
        ),
        ("SchedulingGated", "Scheduling is blocked.", "starts when its queue admits it"),
    ],
)
def test_a_pod_without_a_node_is_reported_and_does_not_end_the_step(
    quiet, log, reason, why, remedy
):
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.jobs
    pod = quiet.server.add_pod(job, "worker", 0)
    pod["status"]["conditions"] = [unscheduled(why, reason)]
    waits = rf"did not end within .*; worker 0 does not run yet: {reason}"
    with pytest.raises(JobFailed, match=waits):
        quiet.run_manifest(manifest, timeout_seconds=1.0, refused_seconds=0.2)
    [line] = warnings(log)
    assert why.rstrip(".") in line and remedy in line


def test_a_volume_that_cannot_be_mounted_is_found_in_the_events_of_the_pod(quiet, log, monkeypatch):
    monkeypatch.setattr(job_refusals, "_USUAL_SECONDS", 0.1)
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.jobs
    pod = quiet.server.add_pod(job, "worker", 0)
    pod["status"]["containerStatuses"] = [waiting("ContainerCreating")]
    quiet.server.warn(pod, "FailedMount", "Unable to attach or mount volumes")
    with pytest.raises(JobFailed, match=r"FailedMount: Unable .* or change kubeflow.volume"):
        quiet.run_manifest(manifest, refused_seconds=0.2)


def test_no_operator_is_reported_and_ends_the_step(quiet, log, monkeypatch):
    monkeypatch.setattr(job_refusals, "_USUAL_SECONDS", 0.1)
    with pytest.raises(
        JobFailed,
        match=f"the {quiet.kind.title} has no pods: check that {quiet.kind.controller} runs",
    ):
        quiet.run(refused_seconds=0.2)
    assert quiet.jobs == []


def test_a_job_in_a_queue_does_not_end_the_step(quiet, log, monkeypatch):
    monkeypatch.setattr(job_refusals, "_USUAL_SECONDS", 0.1)
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    quiet.server.set_condition(manifest["metadata"]["name"], "Suspended", "is suspended.")
    with pytest.raises(JobFailed, match="did not end within"):
        quiet.run_manifest(manifest, timeout_seconds=1.0, refused_seconds=0.2)
    assert any("is Suspended: is suspended." in line for line in lines(log))


def test_a_step_without_permission_to_list_events_follows_the_job(ground, log, monkeypatch):
    monkeypatch.setattr(job_refusals, "_USUAL_SECONDS", 0.1)
    ground.server.fail("GET", "/events", forbidden("list", "events"), "always")
    ground.server.admission = lambda name, spec: QUOTA
    thread, raised = in_background(lambda: ground.run("print('I am', me)", refused_seconds=0.2))
    wait(lambda: [line for line in warnings(log) if f"kubectl describe {ground.kind.name}" in line])
    ground.server.admission = lambda name, spec: None
    thread.join(120)
    assert raised == []
    [line] = [line for line in warnings(log) if "are not shown" in line]
    assert "list on pods and events" in line
