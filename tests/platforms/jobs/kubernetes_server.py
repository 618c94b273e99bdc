"""A Kubernetes API server for tests.

It stores TFJobs, pods and events. To the few requests that are required to follow a TFJob it
responds like a real server, errors included.
"""

import json
import re
import threading
import uuid
from collections import deque

from tests.platforms.jobs.kubernetes_http import Handler, Log, Server, now


class KubernetesServer:
    """A server on 127.0.0.1, whose address is in `kube_config(folder)`.

    Attributes:
      requests: the received requests, as `METHOD path?query`.
      tfjobs: name -> TFJob.
      pods: name -> pod.
      logs: uid of a pod -> its Log.
      events: the events about TFJobs and pods.
      admission: called with the name and the spec of each new pod; returns the message with which
        the pod is refused, as by a quota or a policy, or None.
      on_create: called with each new TFJob.
      on_delete: called with each TFJob that is to be deleted; None: the TFJob is deleted at once.
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.requests = []
        self.tfjobs = {}
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

    def set_condition(self, name, kind, message):
        """Set a condition as the operator does: Running, Restarting and an end are exclusive."""
        with self.lock:
            state = self.tfjobs[name].setdefault("status", {})
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
                    "reason": f"TFJob{kind}",
                    "message": message,
                    "lastUpdateTime": now(),
                    "lastTransitionTime": now(),
                }
            )
            state["conditions"] = conditions

    def add_pod(self, job, kind, index):
        """Add a pending pod, which has no node yet."""
        name = f"{job['metadata']['name']}-{kind}-{index}"
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": job["metadata"]["namespace"],
                "uid": str(uuid.uuid4()),
                "creationTimestamp": now(),
                "labels": {
                    "training.kubeflow.org/job-name": job["metadata"]["name"],
                    "training.kubeflow.org/operator-name": "tfjob-controller",
                    "training.kubeflow.org/replica-type": kind,
                    "training.kubeflow.org/replica-index": str(index),
                },
            },
            "status": {"phase": "Pending", "conditions": []},
        }
        with self.lock:
            self.pods[name] = pod
            self.logs[pod["metadata"]["uid"]] = Log()
        return pod

    def warn(self, about, reason, message):
        """Add a warning about a TFJob or a pod, or increase the count of the same warning."""
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
                    "involvedObject": {"uid": uid, "name": about["metadata"]["name"]},
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

    def start_pod(self, pod):
        with self.lock:
            pod["status"] = {
                "phase": "Running",
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [_container({"running": {"startedAt": now()}})],
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
                "conditions": [{"type": "PodScheduled", "status": "True"}],
                "containerStatuses": [_container({"terminated": end})],
            }
        self.log_of(pod).end()

    def remove_pod(self, name):
        with self.lock:
            pod = self.pods.pop(name)
        self.log_of(pod).end()


def _container(state):
    return {
        "name": "tensorflow",
        "ready": "running" in state,
        "restartCount": 0,
        "image": "registry/amazon-reviews:1",
        "imageID": "",
        "state": state,
    }
