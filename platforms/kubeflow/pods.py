"""The pods of a run on Kubeflow Pipelines: why a step failed or does not start, and the verdict.

The API of Kubeflow Pipelines contains none of these. Its field `pod_name` is the id of a node of
the Workflow, and not the name of a pod. A step whose pod Kubernetes has refused or somebody has
deleted has no pod: the Workflow of Argo contains the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import urllib3
from kubernetes.client import CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from components.run_report.verdict import LOGGED
from core.errors import InputError
from pipeline.nodes import REPORT
from platforms.kubernetes_api import connect
from platforms.kubernetes_objects import USUAL_WAITS, Object, pod_problem, terminated

_SECONDS = (3.0, 10.0)
"""Timeouts of a request, of the connection and of each read."""
_LINES = 100
_FAILED = "status.phase=Failed"
_PENDING = "status.phase=Pending"
_SUCCEEDED = "status.phase=Succeeded"
_CONTAINER = "main"
"""The container of a step; the others of its pod belong to Argo."""
_NODE = "workflows.argoproj.io/node-name"
"""The annotation with the path of a pod in the Workflow."""
_WORKFLOWS = {"group": "argoproj.io", "version": "v1alpha1", "plural": "workflows"}
"""The Workflows of Argo in the API of Kubernetes."""
_STEP = re.compile(r"\.root\.(\w+)\.executor")
_ERROR = re.compile(r"^(?!Error: exit status)(?:[\w.]+|/\S*/python[\d.]*): .+", re.MULTILINE)
"""An error line of our entry point, the last line of a traceback, or the line of an interpreter
whose image lacks our package, but no line of the launcher."""
_FATAL = re.compile(
    r"^F\d{4} \S+ +\d+ \S+\] (?:KFP driver: driver\.\w+\(.*\) failed: )?(.+)", re.MULTILINE
)
"""The last line of Kubeflow's launcher or driver, if it failed, without the driver's arguments."""
_EXIT_STATUS = "failed to execute component: exit status"
"""The launcher's line about a step that ended by itself. The log has the error of the step too."""
_SIGNAL_KILLED = "signal: killed"
"""The end of the launcher's line about a step whose process was killed, but not its container."""
_VERDICT = re.compile(f"{LOGGED}(.+)")
_KILLED = 128
"""The exit code of a container that was killed is greater by the number of the signal."""


class RunPods:
    """The pods of a run, as far as this machine has access to its cluster.

    Args:
      namespace: the namespace of the run.
      run_id: the id of the run.

    Attributes:
      log_command: the command that shows the end of the log of each failed step.
    """

    def __init__(self, namespace: str, run_id: str):
        self._namespace, self._run = namespace, f"pipeline/runid={run_id}"
        self._has_access = True
        self.log_command = (
            f"kubectl get pods -n {namespace} -l {self._run} --field-selector={_FAILED} "
            f"-o name | xargs -I POD kubectl logs -n {namespace} POD -c {_CONTAINER} "
            f"--tail={_LINES}"
        )

    def waits(self) -> list[str]:
        """Return `STEP does not run yet: REASON` for each step that Kubernetes does not start.

        Returns:
          An empty list if this machine cannot read the pods.
        """
        if not self._has_access:
            return []
        try:
            api = CoreV1Api(connect())
            messages = self._messages(api, "Pending")
            pods = self._list(api, _PENDING)
        except InputError:  # There is no kube config. Its plugin may print an error each time.
            self._has_access = False
            return []
        except (ApiException, urllib3.exceptions.HTTPError):
            return []
        problems = [(_step(pod) or pod["metadata"]["name"], pod_problem(pod)) for pod in pods]
        return [f"{step} {problem}" for step, problem in problems if problem] + [
            f"{step} does not run yet: {message}"
            for step, message in _without_pods(messages, pods)
            if not message.startswith(USUAL_WAITS)
        ]

    def errors(self) -> list[str]:
        """Return `POD: ERROR` for each failed step, from the states and the logs of the pods.

        A step without a pod is returned as `STEP: ERROR`. If the run has no pod at all, the only
        line names the namespace, which a server for a single user does not check.

        Returns:
          An empty list if this machine cannot read the pods.
        """
        try:
            api = CoreV1Api(connect())
            messages = self._messages(api, "Failed", "Error")
            failed = self._list(api, _FAILED)
            if not (failed or messages or self._list(api, "")):
                return [
                    f"kubeflow.namespace: {self._namespace} has no pod of this run; set the "
                    "namespace in which the run has its pods, and the kube context of its cluster"
                ]
            # The log of a step that was killed or succeeded contains no error, but perhaps similar
            # lines.
            errors = {
                pod["metadata"]["name"]: _killed_by_node(pod)
                or _killed(pod)
                or self._failed_beside(pod)
                or _last_error(self._log(api, pod["metadata"]["name"]), pod)
                for pod in failed
            }
        except (InputError, ApiException, urllib3.exceptions.HTTPError):
            return []
        return [f"{name}: {error}" for name, error in errors.items() if error] + [
            f"{step}: {message}" for step, message in _without_pods(messages, failed)
        ]

    def was_cancelled(self) -> bool:
        """Return whether somebody has cancelled the run, according to its Workflow.

        Returns:
          False if this machine cannot read the Workflow.
        """
        if not self._has_access:
            return False
        try:
            workflows = self._workflows(CoreV1Api(connect()))
        except InputError:
            return False
        # Kubeflow Pipelines cancels a run with the first field, and Argo Workflows with the second.
        specs = [workflow.get("spec") or {} for workflow in workflows]
        return any(spec.get("activeDeadlineSeconds") == 0 or spec.get("shutdown") for spec in specs)

    def verdict(self) -> str:
        """Return the verdict on the model of a run that has succeeded, from the log of its report.

        Returns:
          An empty string if this machine cannot read the pods, or the log contains no verdict.
        """
        if not self._has_access:
            return ""
        try:
            api = CoreV1Api(connect())
            pods = [pod for pod in self._list(api, _SUCCEEDED) if _step(pod) == REPORT]
        except (InputError, ApiException, urllib3.exceptions.HTTPError):
            return ""
        # Thousands of lines of the launcher may follow the verdict.
        logs = "".join(self._log(api, pod["metadata"]["name"], lines=None) for pod in pods)
        [found] = _VERDICT.findall(logs)[-1:] or [""]
        return str(found)

    def _messages(self, api: CoreV1Api, *phases: str) -> dict[str, str]:
        """Return node -> message of the Workflow, for the nodes in some phases that have pods.

        Args:
          api: the connection to the cluster.
          phases: the phases of Argo Workflows.

        Returns:
          An empty dictionary if this machine can read no Workflow.
        """
        return {
            node["name"]: node["message"]
            for workflow in self._workflows(api)
            for node in (workflow.get("status", {}).get("nodes") or {}).values()
            if node["type"] == "Pod" and node.get("phase") in phases and node.get("message")
        }

    def _workflows(self, api: CoreV1Api) -> list[Object]:
        """Return the Workflow of the run in a list, which is empty if this machine cannot read it.

        Args:
          api: the connection to the cluster.
        """
        try:
            answer = CustomObjectsApi(api.api_client).list_namespaced_custom_object(
                **_WORKFLOWS,
                namespace=self._namespace,
                label_selector=self._run,
                _preload_content=False,
                _request_timeout=_SECONDS,
            )
            workflows: list[Object] = json.loads(answer.data)["items"]
        except (ApiException, urllib3.exceptions.HTTPError):
            return []
        return workflows

    def _list(self, api: CoreV1Api, selector: str) -> list[Object]:
        answer = api.list_namespaced_pod(
            self._namespace,
            label_selector=self._run,
            field_selector=selector,
            _preload_content=False,
            _request_timeout=_SECONDS,
        )
        pods: list[Object] = json.loads(answer.data)["items"]
        return pods

    def _failed_beside(self, pod: Object) -> str:
        """Return the failure of a container of Argo Workflows beside a step; empty if none failed.

        Such a container passes on the results of the step, and uploads its log.
        """
        if terminated(pod, _CONTAINER).get("exitCode") != 0:
            return ""
        name = pod["metadata"]["name"]
        for each in pod["status"]["containerStatuses"]:
            ended = each.get("state", {}).get("terminated") or {}
            if ended.get("exitCode"):
                reason = ended.get("message") or f"exit code {ended['exitCode']}"
                return (
                    f"the step succeeded, but the container {each['name']} of Argo Workflows "
                    f"failed: {reason}; run `kubectl logs -n {self._namespace} {name} -c "
                    f"{each['name']}`"
                )
        return ""

    def _log(self, api: CoreV1Api, name: str, lines: int | None = _LINES) -> str:
        """Return the last lines of the log of a step; empty if its pod has none.

        Args:
          api: the connection to the cluster.
          name: the name of the pod.
          lines: the number of lines; None: the whole log.
        """
        try:
            log = api.read_namespaced_pod_log(
                name,
                self._namespace,
                container=_CONTAINER,
                tail_lines=lines,
                _preload_content=False,
                _request_timeout=_SECONDS,
            )
            content: bytes = log.data
        except (ApiException, urllib3.exceptions.HTTPError):
            # The container did not start, its node is gone, or the connection was lost.
            return ""
        return content.decode(errors="replace")


def _without_pods(messages: Mapping[str, str], pods: Sequence[Object]) -> list[tuple[str, str]]:
    """Return (step, message) for each node of the Workflow that runs in none of some pods.

    Args:
      messages: the result of `RunPods._messages`, from before the request for the pods. A pod that
        was created in between is then among them.
      pods: the pods.
    """
    with_pod = set(map(_node, pods))
    return [(_label(node), message) for node, message in messages.items() if node not in with_pod]


def _node(pod: Object) -> str:
    """Return the name of the node of the Workflow that runs in a pod; empty if it has none."""
    return str((pod["metadata"].get("annotations") or {}).get(_NODE, ""))


def _step(pod: Object) -> str:
    """Return the id of the pipeline's node that runs in a pod; empty for a driver."""
    found = _STEP.search(_node(pod))
    return found[1] if found else ""


def _label(node: str) -> str:
    """Return the step of a node of the Workflow, or the end of its name, such as `root-driver`."""
    found = _STEP.search(node)
    return found[1] if found else node.rpartition(".")[2]


def _killed_by_node(pod: Object) -> str:
    """Return Kubernetes's own reason for the end of a pod, such as an eviction; empty: none."""
    status = pod["status"]
    if status.get("reason"):
        return f"{status['reason']}: {status.get('message', '')}".rstrip(": ")
    reason = str(terminated(pod, _CONTAINER).get("reason") or "")
    if reason == "OOMKilled":
        return f"OOMKilled; increase {_memory(pod)}"
    return "" if reason in ("Error", "Completed") else reason


def _memory(pod: Object) -> str:
    """Return the key of the setting for the memory of a step."""
    return f"cluster.resources.{_step(pod) or 'COMPONENT'}.memory"


def _last_error(log: str, pod: Object) -> str:
    """Return the error in the log of a step; empty if it contains none.

    Args:
      log: the end of the log.
      pod: the pod of the step.
    """
    [fatal] = _FATAL.findall(log)[-1:] or [""]
    [own] = _ERROR.findall(log)[-1:] or [""]
    if fatal.endswith(_SIGNAL_KILLED):
        return f"{fatal}, perhaps for lack of memory; increase {_memory(pod)}"
    if fatal and not fatal.startswith(_EXIT_STATUS):
        return str(fatal)
    return str(own)


def _killed(pod: Object) -> str:
    """Return the exit code of a step that was killed; empty if it ended by itself."""
    code = terminated(pod, _CONTAINER).get("exitCode") or 0
    return f"was killed, exit code {code}" if code > _KILLED else ""
