"""What a submission shows of the pods of its run, with scripted responses of Kubernetes."""

import pytest
import urllib3
import yaml
from kubernetes.client.rest import RESTClientObject

from components.run_report.verdict import LOGGED
from tests.platforms.training_jobs.scripted_api import ScriptedApi, status

KUBE_CONFIG = {
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "http://kubernetes.example"}}],
    "users": [{"name": "c", "user": {"token": "t"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
}
FAILED = {"state": "FAILED", "run_details": {"task_details": []}}
WITHOUT_ERROR = "I1130 00:53:51.276816      43 launcher_v2.go:181] publish success.\n"
LAUNCHER = "F1130 00:53:51.387043      43 main.go:53] failed to execute component: "


@pytest.fixture
def kubernetes(kubeflow, monkeypatch, tmp_path):
    """The cluster of the kube config of a submission."""
    (tmp_path / "kube.yaml").write_text(yaml.safe_dump(KUBE_CONFIG))
    server = ScriptedApi()
    monkeypatch.setattr(RESTClientObject, "request", server.request)
    return server


def pod(name, task, **state):
    node = {"workflows.argoproj.io/node-name": f"amazon-reviews-x7k2p.root.{task}.executor"}
    return {"metadata": {"name": name, "uid": name, "annotations": node}, "status": state}


def waiting(reason, message):
    state = {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}
    return pod("p-1", "Transform", phase="Pending", containerStatuses=[state])


def ended(code, reason="Error", wait=0, **more):
    other = {"exitCode": wait, "reason": "Error" if wait else "Completed", **more}
    others = {"name": "wait", "state": {"terminated": other}}
    main = {"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason}}}
    return {"containerStatuses": [others, main]}


def test_a_step_that_kubernetes_does_not_start_is_reported_with_each_reason_once(
    kubeflow, kubernetes
):
    kubeflow.server.states = [{"state": "RUNNING"}] * 6 + [{"state": "SUCCEEDED"}]
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    large = pod("p-2", "Trainer", phase="Pending", conditions=[{**full, "message": "no memory"}])
    refused = waiting("ErrImagePull", "not\nfound")
    back_off = waiting("ImagePullBackOff", 'Back-off pulling image "i"')
    usual = waiting("PodInitializing", "")
    pending = "/namespaces/team-a/pods .*status.phase=Pending"
    answers = ([usual], [refused], [back_off, large], [refused], [back_off, large])
    kubernetes.answer("GET", pending, *((200, {"items": each}) for each in answers), (500, "down"))
    assert kubeflow(wait=True) == 0
    assert [line[10:] for line in kubeflow.lines if "does not run yet" in line] == [
        "Transform does not run yet: ErrImagePull: not found",
        'Transform does not run yet: ImagePullBackOff: Back-off pulling image "i"',
        "Trainer does not run yet: Unschedulable: no memory",
    ]
    assert all("pipeline/runid=r-1" in request for request in kubernetes.requests)


def workflow(*nodes):
    named = {
        f"id-{number}": {
            "type": "Pod",
            "name": f"amazon-reviews-x7k2p.root{name}",
            "phase": phase,
            **({"message": message} if message else {}),
        }
        for number, (name, phase, message) in enumerate(nodes)
    }
    graph = {"type": "DAG", "name": "amazon-reviews-x7k2p", "phase": "Failed", "message": "child"}
    return {"items": [{"status": {"nodes": {**named, "graph": graph}}}, {}]}


def test_a_step_without_a_pod_is_reported_with_the_reason_of_argo_workflows(kubeflow, kubernetes):
    kubeflow.server.states = [{"state": "RUNNING"}] * 2 + [FAILED]
    quota = 'pods "x" is forbidden: exceeded quota: small, requested: pods=1'
    starting = pod("p-1", "SchemaGen", phase="Pending")
    failed = pod("p-2", "Transform", phase="Failed", reason="Evicted")
    kubernetes.answer("GET", "status.phase=Pending", (200, {"items": [starting]}))
    kubernetes.answer("GET", "status.phase=Failed", (200, {"items": [failed]}))
    kubernetes.answer(
        "GET",
        "/apis/argoproj.io/v1alpha1/namespaces/team-a/workflows .*pipeline/runid=r-1",
        (403, "no"),
        (
            200,
            workflow(
                (".Trainer.executor", "Pending", quota),
                (".SchemaGen.executor", "Pending", "a reason that its pod has too"),
                (".Evaluator-driver", "Pending", "PodInitializing"),
                (".Pusher.executor", "Pending", ""),
            ),
        ),
        (
            200,
            workflow(
                (".Trainer.executor", "Error", "pod deleted"),
                ("-driver", "Error", 'service account "nobody" not found'),
                (".Transform.executor", "Failed", "The node was low on memory"),
                (".Pusher.executor", "Succeeded", "any"),
            ),
        ),
    )
    assert kubeflow(wait=True) == 1
    waits = [line[10:] for line in kubeflow.lines if "does not run yet" in line]
    assert waits == [f"Trainer does not run yet: {quota}"]
    assert kubeflow.lines[-4:-1] == [
        "p-2: Evicted",
        "Trainer: pod deleted",
        'root-driver: service account "nobody" not found',
    ]


@pytest.mark.parametrize("end", [{"activeDeadlineSeconds": 0}, {"shutdown": "Terminate"}])
def test_a_cancelled_run_whose_history_lacks_the_cancellation_is_not_called_failed(
    kubeflow, kubernetes, end
):
    kubeflow.server.states = [FAILED]
    found = workflow((".Trainer.executor", "Failed", "Step exceeded its deadline"))
    for each in found["items"]:
        each["spec"] = end
    kubernetes.answer("GET", "/workflows .*pipeline/runid=r-1", (200, found))
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2].endswith(" was cancelled")
    assert not any("failed" in line or "deadline" in line for line in kubeflow.lines)


def test_a_failed_run_without_pods_names_the_namespace(kubeflow, kubernetes):
    kubeflow.server.states = [FAILED]
    kubernetes.answer("GET", "/namespaces/team-a/", (200, {"items": []}))
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2].startswith("kubeflow.namespace: team-a has no pod of this run; set")


def test_a_run_that_succeeds_without_a_push_is_reported_with_its_verdict(kubeflow, kubernetes):
    verdict = "The model is not blessed and was not pushed: accuracy is 0.7, minimum 0.8."
    ended_pods = [pod("p-1", "Pusher", phase="Succeeded"), pod("p-2", "RunReport")]
    kubernetes.answer("GET", "status.phase=Succeeded", (200, {"items": ended_pods}))
    log = f"INFO absl: Read the report\nINFO absl: {LOGGED}{verdict}\nINFO absl: Done\n"
    kubernetes.answer("GET", "/pods/p-2/log", (200, log), (404, "no log"))
    assert kubeflow(wait=True) == 0
    assert kubeflow.lines[-1] == verdict
    assert not any("/log" in each and "tailLines" in each for each in kubernetes.requests)
    assert kubeflow(wait=True) == 0
    unknown = "the report of the step RunReport shows whether the model was pushed"
    assert kubeflow.lines[-1] == unknown


@pytest.mark.parametrize("lost", ["/pods/p-2/log", "/workflows "])
@pytest.mark.parametrize("end", [{"state": "SUCCEEDED"}, FAILED])
def test_a_connection_that_is_lost_during_a_response_does_not_end_the_command(
    kubeflow, kubernetes, lost, end
):
    kubeflow.server.states = [{"state": "RUNNING"}, end]
    found = [pod("p-2", "RunReport", **ended(1))]
    kubernetes.answer("GET", "/pods .*status.phase", (200, {"items": found}))
    broken = urllib3.exceptions.ProtocolError("Connection broken: IncompleteRead")
    kubernetes.answer("GET", lost, (200, broken))
    assert kubeflow(wait=True) == (1 if end is FAILED else 0)
    assert not any("IncompleteRead" in line for line in kubeflow.lines)


def test_without_a_kube_config_the_pods_are_not_read(kubeflow, kubernetes, tmp_path):
    (tmp_path / "kube.yaml").unlink()
    kubeflow.server.states = [{"state": "RUNNING"}, FAILED]
    assert kubeflow(wait=True) == 1
    assert kubernetes.requests == []
    assert kubeflow.lines[-2].endswith(" failed: no error message from the cluster")


@pytest.mark.parametrize(
    ("log", "state", "error"),
    [
        (
            f"KeyError: 'a'\nDuring\nplace.InputError: no file\n{LAUNCHER}exit status 2\n"
            "Error: exit status 1\n",
            ended(1),
            "place.InputError: no file",
        ),
        (
            "/opt/venv/bin/python3.13: Error while finding module specification for 'platforms."
            "entrypoint' (ModuleNotFoundError: No module named 'platforms')\n"
            f"{LAUNCHER}exit status 1\nError: exit status 1\n",
            ended(1),
            "/opt/venv/bin/python3.13: Error while finding module specification for 'platforms."
            "entrypoint' (ModuleNotFoundError: No module named 'platforms')",
        ),
        (
            f'epoch: 1\n{LAUNCHER}exec: "python": executable file not found in $PATH\n',
            ended(1),
            'failed to execute component: exec: "python": executable file not found in $PATH',
        ),
        (
            "F1130 01:20:18.1 27 main.go:91] KFP driver: driver.Container(pipelineName=a, "
            'taskName="Evaluator", componentSpec) failed: failed to list tasks: no such host\n',
            ended(1),
            "failed to list tasks: no such host",
        ),
        (
            f"base_type: MODEL\n{LAUNCHER}signal: killed\n",
            ended(1),
            "failed to execute component: signal: killed, perhaps for lack of memory; increase "
            "cluster.resources.Transform.memory",
        ),
        (
            WITHOUT_ERROR,
            ended(137, "OOMKilled"),
            "OOMKilled; increase cluster.resources.Transform.memory",
        ),
        (f"base_type: MODEL\n{WITHOUT_ERROR}", ended(137), "was killed, exit code 137"),
        (
            f"base_type: MODEL\n{WITHOUT_ERROR}",
            ended(0, "Completed", wait=64, message="failed to put file: no such host"),
            "the step succeeded, but the container wait of Argo Workflows failed: failed to put "
            "file: no such host; run `kubectl logs -n team-a p-2 -c wait`",
        ),
        (
            WITHOUT_ERROR,
            ended(0, "Completed", wait=127),
            "the step succeeded, but the container wait of Argo Workflows failed: exit code 127; "
            "run `kubectl logs -n team-a p-2 -c wait`",
        ),
        (None, {"reason": "Evicted", "message": "low on memory"}, "Evicted: low on memory"),
        (None, {"reason": "Shutdown"}, "Shutdown"),
    ],
)
def test_a_failed_step_is_reported_with_its_error(kubeflow, kubernetes, log, state, error):
    kubeflow.server.states = [FAILED]
    pods = [
        pod("p-1", "ExampleValidator", phase="Failed"),
        pod("p-2", "Transform", phase="Failed", **state),
    ]
    kubernetes.answer("GET", "/pods.*status.phase=Failed", (200, {"items": pods}))
    kubernetes.answer("GET", "/pods/p-1/log.*main", urllib3.exceptions.ProtocolError("broken"))
    missing = status(404, 'pods "p-2" not found')
    kubernetes.answer("GET", "/pods/p-2/log.*main", missing if log is None else (200, log))
    assert kubeflow(wait=True) == 1
    assert kubeflow.lines[-2] == f"p-2: {error}"
    assert not any(line.startswith("p-1") for line in kubeflow.lines)
