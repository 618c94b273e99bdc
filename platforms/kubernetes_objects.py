"""The states of pods, from objects of the Kubernetes API. It does not import its Python client."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
"""An object of the Kubernetes API, or a part of one, as JSON."""
USUAL_WAITS = ("ContainerCreating", "PodInitializing")
"""The reasons with which the container of a pod that starts waits."""


def terminated(pod: Object, container: str) -> Object:
    """Return Kubernetes's description of the end of a container; empty before its end.

    Args:
      pod: the object as the API returns it.
      container: the name of the container.
    """
    for each in pod.get("status", {}).get("containerStatuses") or []:
        if each["name"] == container:
            ended: Object = each.get("state", {}).get("terminated") or {}
            return ended
    return {}


def pod_problem(pod: Object) -> str:
    """Return the reason why a pod does not run, or the loss of its node; empty without a problem.

    Args:
      pod: the object as the API returns it.

    Returns:
      A clause that follows the name of the pod's step or replica in a message.
    """
    status = pod.get("status", {})
    if status.get("phase") == "Running" and (lost := _loss(status)):
        node = pod.get("spec", {}).get("nodeName")
        return (
            f"is lost ({lost}): the job waits until node {node} has ended pod "
            f"{pod['metadata']['name']}, or until the Node object is deleted"
        )
    if status.get("phase") == "Pending" and (blocked_by := _blocked_by(status)):
        return f"does not run yet: {blocked_by}"
    return ""


def _true_conditions(status: Object) -> dict[str, Object]:
    """Return type -> condition, for the true conditions of a pod."""
    conditions = status.get("conditions") or []
    return {each["type"]: each for each in conditions if each["status"] == "True"}


def disruption(status: Object) -> str:
    """Return Kubernetes's reason for the disruption of a pod; empty without one.

    Args:
      status: the status of the pod.
    """
    return str(_true_conditions(status).get("DisruptionTarget", {}).get("reason", ""))


def _loss(status: Object) -> str:
    """Return the reason why a running pod counts as lost; empty if it does not."""
    true = _true_conditions(status)
    # If a node does not respond, the control plane sets Ready to False and nothing else.
    node_is_silent = "ContainersReady" in true and "Ready" not in true
    return disruption(status) or ("NodeNotReady" if node_is_silent else "")


def _blocked_by(status: Object) -> str:
    """Return the reason why a pending pod has not started; empty for a usual reason."""
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason')}: {condition.get('message')}"
    # A cluster may add init containers to every pod, for a proxy for example.
    for statuses in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(statuses) or []:
            waiting = container.get("state", {}).get("waiting") or {}
            if waiting.get("reason") and waiting["reason"] not in USUAL_WAITS:
                return f"{waiting['reason']}: {waiting.get('message', '')}"
    return ""
