"""Training jobs under the training operator, JobSet and Kubeflow Trainer of a real cluster.

Every step has the permissions of the guide, and every pod is in a namespace that enforces the Pod
Security Standard `restricted`. $CLUSTER_FOLDER is a folder which this machine and the nodes of the
cluster have under the same path.
"""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time

import pytest
import urllib3

from core.errors import InputError
from platforms.training_jobs import kubernetes
from platforms.training_jobs.job import JobFailed
from platforms.training_jobs.kinds import KINDS
from tests.checkout import CHECKOUT
from tests.cluster.training_ground import Ground, skip_without
from tests.waiting import wait

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture
def ground(cluster, step_config, kind, log, monkeypatch):
    skip_without(kind)
    monkeypatch.setenv("KUBECONFIG", step_config)
    folder = cluster.folder / secrets.token_hex(4)
    folder.mkdir()
    folder.chmod(0o777)
    return Ground(cluster, kind, folder)


def shows(log, text):
    """Return whether a line of the log contains a text."""
    return any(text in record.getMessage() for record in log.records)


def running(ground, manifest):
    return {name for name, pod in ground.pods(manifest).items() if pod.phase == "Running"}


def end(ground, thread, raised):
    """Let the pods end; the step must succeed."""
    (ground.folder / "end").touch()
    thread.join(300)
    assert raised == [] and not thread.is_alive()


def test_the_replicas_find_each_other_and_the_servers_end_with_the_chief(ground, log):
    script = (
        "for host in sum(config['cluster'].values(), []):\n"
        "    while True:\n"
        "        try: socket.gethostbyname(host.split(':')[0]); break\n"
        "        except OSError: time.sleep(1)\n"
        "print('I am', me)\n"
        "wait_for('end' if me == 'chief 0' else 'never')"
    )
    manifest = ground.manifest(script, strategy="parameter_server")
    thread, raised = ground.start(manifest)
    for replica in ("chief", "worker 0", "worker 1", "ps 0"):
        name = f"{replica} 0" if replica == "chief" else replica
        wait(lambda line=f"[{replica}] I am {name}": shows(log, line))
    end(ground, thread, raised)
    wait(lambda: not running(ground, manifest))


def test_replicas_that_are_killed_are_restarted_and_the_others_stay(ground, log):
    script = (
        "codes = {'worker 0': 128, 'worker 1': 137, 'worker 2': 255}\n"
        "print('start of', me)\n"
        "if me in codes and is_first():\n"
        "    wait_for('kill')\n"
        "    os._exit(codes[me])\n"
        "print('ready', me)\n"
        "wait_for('end')"
    )
    manifest = ground.manifest(script, workers=4)
    thread, raised = ground.start(manifest)
    wait(lambda: len(running(ground, manifest)) == 4)
    before = ground.pods(manifest)
    (ground.folder / "kill").touch()
    for number in range(3):
        wait(lambda line=f"[worker {number}] ready worker {number}": shows(log, line))
        assert shows(log, f"worker {number} was restarted")
    assert ground.pods(manifest)["chief"].uid == before["chief"].uid
    end(ground, thread, raised)


def test_an_evicted_replica_is_replaced(ground, log):
    manifest = ground.manifest("print('ready', is_first())\nwait_for('end')")
    thread, raised = ground.start(manifest)
    wait(lambda: shows(log, "[worker 0] ready True") and shows(log, "[chief] ready True"))
    before = ground.pods(manifest)
    ground.evict(manifest, "worker 0")
    wait(lambda: shows(log, "[worker 0] ready False"))
    assert shows(log, "worker 0 is lost (EvictionByEvictionAPI): the job waits")
    assert shows(log, "worker 0 was restarted")
    # The training operator fails the whole TFJob, and the step starts it again.
    same = ground.pods(manifest)["chief"].uid == before["chief"].uid
    assert same != shows(log, "replica(s) failed.; starting it again")
    end(ground, thread, raised)


def test_a_node_that_does_not_respond_is_named_and_its_replicas_return(ground, log):
    node, power = os.environ.get("CLUSTER_NODE"), os.environ.get("CLUSTER_NODE_POWER", "")
    if not node:
        pytest.skip("CLUSTER_NODE is not set; see CONTRIBUTING.md")
    away = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    tolerations = [{"operator": "Exists", "effect": "NoSchedule"}, {**away, "tolerationSeconds": 5}]
    pod = {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": tolerations}
    manifest = ground.manifest("print('ready', is_first())\nwait_for('end')", pod=pod)
    thread, raised = ground.start(manifest)
    wait(lambda: shows(log, "[worker 0] ready True") and shows(log, "[chief] ready True"))
    subprocess.run(f"{power} off", shell=True, check=True)
    try:
        # The state NodeNotReady before it may be too short for a look.
        text = f"worker 0 is lost (DeletionByTaintManager): the job waits until node {node} has"
        wait(lambda: shows(log, text))
        assert thread.is_alive()
    finally:
        subprocess.run(f"{power} on", shell=True, check=True)
    wait(lambda: shows(log, "[worker 0] ready False") and shows(log, "[chief] ready False"))
    end(ground, thread, raised)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (127, JobFailed, r"worker 0 ended with exit code 127: ValueError: no such thing"),
        (2, InputError, r"^training\.epochs: 0 is too few$"),
    ],
)
def test_an_error_ends_the_job_and_names_the_replica(ground, code, error, message):
    script = (
        "if me == 'worker 0':\n"
        "    print('training.epochs: 0 is too few')\n"
        f"    if {code} == 127: print('ValueError: no such thing')\n"
        f"    sys.exit({code})\n"
        "if me == 'worker 1': os._exit(137)\n"
        "time.sleep(600)"
    )
    manifest = ground.manifest(script, workers=3)
    with pytest.raises(error, match=message):
        ground.follow(manifest)
    # The failed job is kept for inspection, and its other pods end.
    wait(lambda: not running(ground, manifest))
    assert ground.job(manifest)


QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}


def test_an_api_server_that_is_away_for_half_a_minute_costs_nothing(ground, log, monkeypatch):
    def refuse(*unused, **unused_too):
        raise ConnectionRefusedError("away")

    thread, raised = ground.start(ground.manifest("print('ready')\nwait_for('end')"))
    wait(lambda: shows(log, "[worker 0] ready") and shows(log, "[chief] ready"))
    with monkeypatch.context() as away:
        away.setattr(urllib3.util.connection, "create_connection", refuse)
        ground.api.rest_client.pool_manager.clear()
        time.sleep(30)
    assert shows(log, "retrying in 16.0 s")
    end(ground, thread, raised)
    assert not shows(log, "was restarted")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"service_account": "nobody"}, "reports .*FailedCreate.*nobody"),
        ({"image": "missing.invalid/missing:1"}, "does not run yet: (ErrImage|ImagePull)"),
        ({"volume_claim": "missing"}, "does not run yet: .* not found"),
        (
            {"pod": {"securityContext": {"runAsUser": 0}}},
            r"reports .*FailedCreate.*violates PodSecurity",
        ),
    ],
    ids=["service account", "image", "volume", "pod security"],
)
def test_a_replica_that_can_never_start_ends_the_job(ground, monkeypatch, settings, text):
    monkeypatch.setattr(kubernetes, "REFUSED_SECONDS", 5)
    manifest = ground.manifest(**settings)
    with pytest.raises(JobFailed, match=text):
        ground.follow(manifest)
    wait(lambda: ground.job(manifest) is None)


@pytest.mark.parametrize("cause", ["quota", "node"])
def test_a_replica_that_may_start_later_is_waited_for(ground, log, monkeypatch, cause):
    monkeypatch.setattr(kubernetes, "REFUSED_SECONDS", 2)
    settings, text = {}, "exceeded quota"
    if cause == "quota":
        ground.cluster.apply({**QUOTA, "spec": {"hard": {"pods": "0"}}})
    else:
        settings, text = {"pod": {"nodeSelector": {"pool": "none"}}}, "Unschedulable"
    manifest = ground.manifest(**settings)
    try:
        with pytest.raises(JobFailed, match=f"did not end within.*{text}"):
            ground.follow(manifest, timeout_seconds=25)
    finally:
        ground.cluster.apply({**QUOTA, "spec": {"hard": {"pods": "100"}}})
    assert shows(log, text)
    wait(lambda: ground.job(manifest) is None)


def test_a_job_that_somebody_suspends_continues_and_one_that_somebody_deletes_ends(
    ground, log, monkeypatch
):
    monkeypatch.setattr(kubernetes, "REFUSED_SECONDS", 2)
    manifest = ground.manifest("print('ready', is_first())\nwait_for('end')")
    thread, raised = ground.start(manifest)
    wait(lambda: shows(log, "[worker 0] ready True") and shows(log, "[chief] ready True"))
    ground.suspend(manifest, True)
    wait(lambda: not ground.pods(manifest) and shows(log, f"{ground.kind.title} is Suspended"))
    ground.suspend(manifest, False)
    wait(lambda: shows(log, "[worker 0] ready False") and shows(log, "[chief] ready False"))
    assert thread.is_alive()
    ground.client.delete(manifest["metadata"]["name"])
    thread.join(120)
    assert "was deleted by another program or user" in str(raised[0])


PROGRAM = """
import json, sys
from absl import logging
from platforms.kubernetes_api import connect
from platforms.training_jobs.client import JobClient, supported_kind
from platforms.training_jobs.job import KubernetesJobSettings
from platforms.training_jobs.kubernetes import run
from trainer_module.settings import TrainingJob

logging.set_verbosity(logging.INFO)
manifest, job, settings = json.load(open(sys.argv[1]))
settings, api = KubernetesJobSettings(**settings), connect()
client = JobClient(api, supported_kind(api, settings), settings.namespace)
run(client, manifest, TrainingJob(**job), settings)
"""


def test_a_retried_step_follows_its_job_and_a_cancelled_one_deletes_it(ground, log):
    manifest = ground.manifest("print('I am', me)\nwait_for('end')")
    file = ground.folder / "manifest.json"
    job, settings = ground.training().model_dump(), ground.settings().model_dump()
    file.write_text(json.dumps([manifest, job, settings]))

    def step():
        """Start a step and return it once it shows the log of the chief."""
        command = [sys.executable, "-c", PROGRAM, file]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(command, cwd=CHECKOUT, **output)
        assert any("[chief] I am chief 0" in line for line in process.stdout)
        return process

    killed = step()
    killed.kill()
    killed.wait()
    uid = ground.job(manifest)["metadata"]["uid"]
    cancelled = step()
    assert ground.job(manifest)["metadata"]["uid"] == uid
    cancelled.send_signal(signal.SIGTERM)
    rest, _ = cancelled.communicate(timeout=120)
    assert cancelled.returncode == 143 and f"Deleting {ground.kind.title}" in rest
    wait(lambda: ground.job(manifest) is None)
    # The next attempt starts again, and a job that succeeded is not repeated.
    thread, raised = ground.start(manifest)
    end(ground, thread, raised)
    ground.follow(manifest)
    assert sum(each.getMessage().startswith("Created ") for each in log.records) == 1


@pytest.mark.parametrize(
    ("verb", "resource", "message"),
    [
        ("create", "jobsets", 'cannot create resource "jobsets"'),
        ("get", "jobsets", 'cannot get resource "jobsets"'),
        ("delete", "jobsets", 'may still exist: .* cannot delete resource "jobsets"'),
        ("list", "pods", 'cannot list resource "pods"'),
        ("list", "events", 'cannot list resource "events"'),
        ("get", "pods/log", 'The log of chief cannot be read: .* cannot get resource "pods/log"'),
    ],
)
@pytest.mark.parametrize("kind", KINDS[-1:], ids=["jobset"])
def test_the_guide_names_no_permission_too_many(
    cluster, ground, log, monkeypatch, verb, resource, message
):
    account = f"no-{verb}-{resource.replace('/', '-')}"
    monkeypatch.setenv("KUBECONFIG", cluster.kube_config(account, without=(verb, resource)))
    poor = Ground(cluster, ground.kind, ground.folder)
    with pytest.raises((InputError, JobFailed)) as caught:
        poor.follow(poor.manifest("wait_for('end')"), timeout_seconds=20)
    assert re.search(message, f"{log.text}\n{caught.value}")
