"""A test double of Kubeflow's training operator (v1.9)."""

import json

from tests.platforms.jobs.kubelet import free_ports
from tests.platforms.jobs.refused import admit

NO_EXIT_CODE = 0xBEEF
"""The operator's exit code of a pod that ended without one, such as an evicted pod."""


def is_restarted(exit_code):
    """Return whether the operator restarts a failed pod under the restart policy `ExitCode`."""
    return exit_code >= 128


class TrainingOperator:
    """Creates the pods of TFJobs, with TF_CONFIG, and writes their conditions."""

    def __init__(self, kubelet):
        self._kubelet = kubelet
        self._server = kubelet.server
        self._addresses = {}

    def reconcile(self, job):
        name = job["metadata"]["name"]
        conditions = job.get("status", {}).get("conditions", [])
        if any(each["type"] in ("Succeeded", "Failed") for each in conditions):
            # cleanPodPolicy: Running
            assert job["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"
            pods = self._kubelet.pods(job)
            self._kubelet.terminate([p for p in pods if p["status"]["phase"] == "Running"])
            return
        if job["spec"]["runPolicy"].get("suspend"):
            self._kubelet.terminate(self._kubelet.pods(job))
            self._server.set_condition(name, "Suspended", f"TFJob {name} is suspended.")
            return
        if any(each["type"] == "Suspended" and each["status"] == "True" for each in conditions):
            self._server.unset_condition(name, "Suspended")
        # The operator writes no status if it failed to create a missing pod.
        news = self._reconcile_pods(job)
        if not conditions:
            self._server.set_condition(name, "Created", f"TFJob {name} is created.")
        for kind, message in news:
            self._server.set_condition(name, kind, message)

    def _reconcile_pods(self, job):
        """Create the missing pods; return the resulting conditions with their messages."""
        name, specs = job["metadata"]["name"], job["spec"]["tfReplicaSpecs"]
        news = []
        for kind, spec in specs.items():
            for index in range(spec["replicas"]):
                news += self._reconcile_pod(job, kind, index)
        pods = self._kubelet.pods(job)
        phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods}
        chief = f"{name}-chief-0" if "Chief" in specs else f"{name}-worker-0"
        if phases.get(chief) == "Succeeded":
            message = f"TFJob {job['metadata']['namespace']}/{name} successfully completed."
            news.append(("Succeeded", message))
        elif phases.get(chief) == "Running":
            message = f"TFJob {job['metadata']['namespace']}/{name} is running."
            news.append(("Running", message))
        return news

    def _reconcile_pod(self, job, kind, index):
        name = job["metadata"]["name"]
        pod_name = f"{name}-{kind.lower()}-{index}"
        pod = self._server.pods.get(pod_name)
        if pod is None:
            self._run(job, kind, index)
        elif pod["status"]["phase"] == "Failed":
            containers = pod["status"].get("containerStatuses", [])
            codes = [each["state"]["terminated"]["exitCode"] for each in containers]
            if is_restarted((codes or [NO_EXIT_CODE])[0]):
                self._kubelet.restarts += 1
                self._server.remove_pod(pod_name)
                return [
                    ("Restarting", f"job {name} is restarting because {kind} replica(s) failed.")
                ]
            return [("Failed", f'job "{name}" is failing because "{kind}" replica(s) failed.')]
        return []

    def _run(self, job, kind, index):
        spec = job["spec"]["tfReplicaSpecs"][kind]["template"]["spec"]
        assert spec["containers"][0]["name"] == "tensorflow"
        name = f"{job['metadata']['name']}-{kind.lower()}-{index}"
        admit(self._server, job, "FailedCreatePod", name, spec)
        pod = self._server.add_pod(job, kind.lower(), index)
        config = self._tf_config(job, kind, index)
        self._kubelet.start(pod, spec, {"TF_CONFIG": config} if config else {})

    def _tf_config(self, job, kind, index):
        """Return TF_CONFIG as the operator sets it; None for a single replica."""
        counts = {
            each.lower(): spec["replicas"] for each, spec in job["spec"]["tfReplicaSpecs"].items()
        }
        if sum(counts.values()) == 1:
            return None
        key = job["metadata"]["uid"]
        if key not in self._addresses:
            ports = iter(free_ports(sum(counts.values())))
            self._addresses[key] = {
                each: [f"127.0.0.1:{next(ports)}" for _ in range(count)]
                for each, count in counts.items()
            }
        task = {"type": kind.lower(), "index": index}
        return json.dumps({"cluster": self._addresses[key], "task": task, "environment": "cloud"})
