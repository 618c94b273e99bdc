"""A Kubernetes API server for tests.

It stores jobs, pods and events. To the few requests that are required to follow a job it responds
like a real server, errors included.
"""

import json
import re
import threading
import uuid
from collections import deque

from pipeline.cluster_settings import RUNTIME
from platforms.jobs.choice import KINDS
from tests.kubeflow_files import training_runtime
from tests.platforms.jobs.kubernetes_http import Handler, Log, Server, now


class KubernetesServer:
    """A server on 127.0.0.1, whose address is in `kube_config(folder)`.

    Attributes:
      requests: the received requests, as `METHOD path?query`.
      kinds: title -> each kind of job whose CRD is installed.
      runtimes: name -> ClusterTrainingRuntime.
      jobs: name -> TFJob, TrainJob or JobSet.
      pods: name -> pod.
      logs: uid of a pod -> its Log.
      events: the events about jobs and pods.
      admission: called with the name and the spec of each new pod; returns the message with which
        the pod is refused, as by a quota or a policy, or None.
      on_create: called with each new job.
      on_delete: called with each job that is to be deleted; None: the job is deleted at once.
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.requests = []
        self.kinds = {kind.title: kind for kind in KINDS}
        self.runtimes = {RUNTIME: training_runtime()}
        self.jobs = {}
        self.pods = {}
        self.logs = {}
        self.events = []
        self.admission = lambda name, spec: None
        self.on_create = lambda job: None
        self.on_delete = None
        self._faults = []
        handler = type("Handler", (Handler,), {"kubernetes": self})
        self._http = Server(("127.0.0.1", 0), handler)
        self.port = self._http.server_port
        # A short interval, because `shutdown` waits for it.
        threading.Thread(target=self._http.serve_forever, args=[0.05], daemon=True).start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()

    def fail(self, method, path, *answers):
        """Replace the responses to the next requests of a kind.

        An answer is (code, Status or text), optionally with headers as the third element; or
        `drop`: the connection is closed without a response; `hang`: the connection stays open
        for 5 s without a response; `lose`: the request is executed, but its response is lost. If
        the second answer is `always`, the first one is for all requests.
        """
        with self.lock:
            self._faults.append((method, re.compile(path), deque(answers)))

    def fault(self, method, path):
        with self.lock:
            for wanted, pattern, answers in self._faults:
                if wanted == method and pattern.search(path) and answers:
                    if len(answers) == 2 and answers[1] == "always":
                        return answers[0]
                    return answers.popleft()
        return None

    def find_requests(self, method, path):
        with self.lock:
            return [each for each in self.requests if re.match(f"{method} .*{path}", each)]

    def kube_config(self, folder):
        """Write a kube config and return its path."""
        file = folder / "kube-config.yaml"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.port}"}},
            ],
            "users": [{"name": "test", "user": {"token": "secret"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        file.write_text(json.dumps(config))
        return str(file)

    # Changes by an operator or a test.

    def refused_by_webhook(self, job):
        """Return why the webhook of Kubeflow Trainer refuses a job; None: it does not."""
        if job["kind"] != "TrainJob" or job["spec"]["runtimeRef"]["name"] in self.runtimes:
            return None
        name = job["spec"]["runtimeRef"]["name"]
        return (
            '"validator.trainjob.trainer.kubeflow.org" denied the request: spec.runtimeRef: '
            f'Invalid value: ClusterTrainingRuntime.trainer.kubeflow.org "{name}" not found: '
            "specified clusterTrainingRuntime must be created before the TrainJob is created"
        )

    def set_condition(self, name, kind, message):
        """Set a condition as the controller does, under its name for that kind of job.

        Running, Restarting and an end are exclusive. Only a TFJob has the first two.
        """
        with self.lock:
            job = self.jobs[name]
            state = job.setdefault("status", {})
            if job["kind"] != "TFJob":
                ends = {"JobSet": "Completed", "TrainJob": "Complete"}
                kind = ends[job["kind"]] if kind == "Succeeded" else kind
                if kind in ("Running", "Restarting", "Created"):
                    field = {"JobSet": "replicatedJobsStatus", "TrainJob": "jobsStatus"}[
                        job["kind"]
                    ]
                    state[field] = [{"name": "any", "active": 1}]
                    return
            conditions = state.setdefault("conditions", [])
            if any(each["type"] == "Failed" for each in conditions):
                return
            other = {"Running": "Restarting", "Restarting": "Running"}.get(kind)
            conditions = [each for each in conditions if each["type"] not in (kind, other)]
            for each in conditions:
                if kind in ("Succeeded", "Failed") and each["type"] == "Running":
                    each["status"] = "False"
            conditions.append(
                {
                    "type": kind,
                    "status": "True",
                    "reason": f"{job['kind']}{kind}",
                    "message": message,
                    "lastTransitionTime": now(),
                }
            )
            state["conditions"] = conditions

    def unset_condition(self, name, kind):
        with self.lock:
            for each in self.jobs[name]["status"]["conditions"]:
                if each["type"] == kind:
                    each["status"] = "False"

    def pods_of(self, job):
        """Return the pods of a job."""
        label = self.kinds[job["kind"]].pod_label
        name = job["metadata"]["name"]
        return [p for p in list(self.pods.values()) if p["metadata"]["labels"].get(label) == name]

    def add_pod(self, job, task, index):
        """Add a pending pod of a replica, which has no node yet."""
        name = job["metadata"]["name"]
        if job["kind"] == "JobSet":
            return self.add_pod_of_job(job, task, index)
        if job["kind"] == "TrainJob":
            [variable] = job["spec"]["trainer"]["env"]
            tasks = [
                (t, i)
                for t, each in json.loads(variable["value"]).items()
                for i in range(len(each))
            ]
            return self.add_pod_of_job(job, "node", tasks.index((task, index)))
        labels = {
            "training.kubeflow.org/job-name": name,
            "training.kubeflow.org/operator-name": "tfjob-controller",
            "training.kubeflow.org/replica-type": task,
            "training.kubeflow.org/replica-index": str(index),
        }
        return self._add_pod(job, f"{name}-{task}-{index}", labels, {})

    def add_pod_of_job(self, job, replicated_job, index):
        """Add a pending pod as the Job of a replicated job does."""
        name = f"{job['metadata']['name']}-{replicated_job}-0"
        labels = {
            "jobset.sigs.k8s.io/jobset-name": job["metadata"]["name"],
            "jobset.sigs.k8s.io/replicatedjob-name": replicated_job,
            "jobset.sigs.k8s.io/job-index": "0",
            "batch.kubernetes.io/job-name": name,
        }
        annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
        suffix = uuid.uuid4().hex[:5]
        return self._add_pod(job, f"{name}-{index}-{suffix}", labels, annotations)

    def _add_pod(self, job, name, labels, annotations):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": job["metadata"]["namespace"],
                "uid": str(uuid.uuid4()),
                "creationTimestamp": now(),
                "labels": labels,
                "annotations": annotations,
            },
            "status": {"phase": "Pending", "conditions": []},
        }
        with self.lock:
            self.pods[name] = pod
            self.logs[pod["metadata"]["uid"]] = Log()
        return pod

    def owner_job(self, job, replicated_job):
        """Return the Job of a replicated job, of which the test server keeps no more."""
        name = f"{job['metadata']['name']}-{replicated_job}-0"
        return {
            "kind": "Job",
            "metadata": {"name": name, "uid": f"{job['metadata']['uid']}-{name}"},
        }

    def owner_of(self, job, task):
        """Return the object whose events contain the reason why a pod is refused."""
        if job["kind"] == "TFJob":
            return job
        return self.owner_job(job, task if job["kind"] == "JobSet" else "node")

    def warn(self, about, reason, message):
        """Add a warning about a job or a pod, or increase the count of the same warning."""
        with self.lock:
            uid = about["metadata"]["uid"]
            for event in self.events:
                same = (event["involvedObject"]["uid"], event["reason"], event["message"])
                if same == (uid, reason, message):
                    event |= {"count": event["count"] + 1, "lastTimestamp": now()}
                    return
            self.events.append(
                {
                    "metadata": {"name": str(uuid.uuid4()), "creationTimestamp": now()},
                    "involvedObject": {
                        "uid": uid,
                        "kind": about["kind"],
                        "name": about["metadata"]["name"],
                    },
                    "type": "Warning",
                    "reason": reason,
                    "message": message,
                    "count": 1,
                    "firstTimestamp": now(),
                    "lastTimestamp": now(),
                }
            )

    def log_of(self, pod):
        return self.logs[pod["metadata"]["uid"]]

    def start_pod(self, pod, container=None):
        with self.lock:
            container = container or self._container_of(pod)
            pod["status"] = {
                "phase": "Running",
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [_container(container, {"running": {"startedAt": now()}})],
            }

    def end_pod(self, pod, code, reason=None):
        with self.lock:
            end = {
                "exitCode": code,
                "reason": reason or ("Error" if code else "Completed"),
                "startedAt": now(),
                "finishedAt": now(),
            }
            pod["status"] = {
                "phase": "Failed" if code else "Succeeded",
                "conditions": pod["status"]["conditions"],
                "containerStatuses": [_container(self._container_of(pod), {"terminated": end})],
            }
        self.log_of(pod).end()

    def _container_of(self, pod):
        trains = pod["metadata"]["labels"].get("jobset.sigs.k8s.io/replicatedjob-name")
        return "node" if trains == "node" else "tensorflow"

    def remove_pod(self, name):
        with self.lock:
            pod = self.pods.pop(name)
        self.log_of(pod).end()


def _container(name, state):
    return {
        "name": name,
        "ready": "running" in state,
        "restartCount": 0,
        "image": "registry/amazon-reviews:1",
        "imageID": "",
        "state": state,
    }
