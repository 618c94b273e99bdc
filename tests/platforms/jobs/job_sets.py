"""Test doubles of Kubernetes's Job controller, the JobSet controller and Kubeflow Trainer v2."""

import copy

from tests.platforms.jobs.refused import Refused, admit

FAILED_BY_POLICY = "applying FailJobSet failure policy action"
RESTARTED = "applying RestartJobSet failure policy action"
RESTARTED_TOO_OFTEN = "jobset failed due to reaching max number of restarts"
"""The messages of the JobSet controller, which it completes with the first failed Job."""
MERGED_BY = {"volumes": "name", "volumeMounts": "mountPath"}
"""The lists to which a patch of a TrainJob adds, with their keys; it replaces other lists."""


class JobSets:
    """Runs JobSets, and TrainJobs as the JobSets that Kubeflow Trainer makes of them.

    A Job is a dictionary with its failed pods and its end; only its name is in the API.
    """

    def __init__(self, kubelet):
        self._kubelet = kubelet
        self._server = kubelet.server
        self._jobs = {}
        self._counted = set()

    def reconcile(self, job):
        conditions = job.setdefault("status", {}).setdefault("conditions", [])
        ended = {"Completed", "Complete", "Failed"}
        if any(each["type"] in ended and each["status"] == "True" for each in conditions):
            pods = self._kubelet.pods(job)
            self._kubelet.terminate([p for p in pods if p["status"]["phase"] == "Running"])
            return
        if job["spec"].get("suspend"):
            self._kubelet.terminate(self._kubelet.pods(job))
            self._server.set_condition(job["metadata"]["name"], "Suspended", "jobset is suspended")
            return
        if any(each["type"] == "Suspended" and each["status"] == "True" for each in conditions):
            self._server.unset_condition(job["metadata"]["name"], "Suspended")
        spec = job["spec"] if job["kind"] == "JobSet" else of_train_job(job, self._server.runtimes)
        refused = None
        for each in spec["replicatedJobs"]:
            try:
                self._reconcile_job(job, spec, each)
            except Refused as error:
                refused = error
        self._end(job, spec)
        current = [p for p in self._kubelet.pods(job) if "deletionTimestamp" not in p["metadata"]]
        running = [pod for pod in current if pod["status"]["phase"] == "Running"]
        if len(running) == len(hosts(job, spec)):
            self._server.unset_condition(job["metadata"]["name"], "RestartingJobSet")
        status = [self._status(job, each["name"]) for each in spec["replicatedJobs"]]
        job["status"]["replicatedJobsStatus" if job["kind"] == "JobSet" else "jobsStatus"] = status
        if refused:
            raise refused

    def _reconcile_job(self, job, spec, replicated):
        """Do what the Job controller does for the Job of a replicated job."""
        assert replicated["replicas"] == 1
        name, of_job = replicated["name"], replicated["template"]["spec"]
        assert of_job["completionMode"] == "Indexed"
        assert of_job["podReplacementPolicy"] == "Failed"
        state = self._job(job, name)
        if state["end"]:
            return
        succeeded = set()
        for index in range(of_job["completions"]):
            pods = [p for p in self._pods(job, name) if _index(p) == index]
            phases = [pod["status"]["phase"] for pod in pods]
            for pod in pods:
                if (
                    pod["status"]["phase"] == "Failed"
                    and pod["metadata"]["uid"] not in self._counted
                ):
                    self._counted.add(pod["metadata"]["uid"])
                    self._count(pod, of_job, state)
            if "Succeeded" in phases:
                succeeded.add(index)
            elif state["end"] is None and not {"Pending", "Running"} & set(phases):
                self._run(job, spec, replicated, index)
        rules = of_job.get("successPolicy", {}).get("rules", [])
        enough = any({int(rule["succeededIndexes"])} <= succeeded for rule in rules)
        if state["end"] is None and (enough or len(succeeded) == of_job["completions"]):
            state["end"] = "Complete"
        if state["end"]:
            pods = self._pods(job, name)
            self._kubelet.terminate([p for p in pods if p["status"]["phase"] == "Running"])

    def _count(self, pod, of_job, state):
        """Apply the pod failure policy to a failed pod."""
        state["replaced"] += 1
        action = action_for(pod, of_job)
        if action == "FailJob":
            state["end"], state["reason"] = "Failed", "PodFailurePolicy"
        elif action == "Count":
            state["failed"] += 1
            if state["failed"] > of_job["backoffLimit"]:
                state["end"], state["reason"] = "Failed", "BackoffLimitExceeded"

    def _run(self, job, spec, replicated, index):
        of_pod = replicated["template"]["spec"]["template"]
        assert of_pod["spec"]["restartPolicy"] == "Never"
        task = replicated["name"]
        pod_name = f"{job['metadata']['name']}-{task}-0-{index}-x1y2z"
        owner = self._server.owner_job(job, task)
        admit(self._server, owner, "FailedCreate", pod_name, of_pod["spec"])
        pod = self._server.add_pod_of_job(job, task, index)
        state = self._job(job, task)
        self._kubelet.restarts += index in state["created"]
        state["created"].add(index)
        self._kubelet.start(pod, of_pod["spec"], {}, hosts(job, spec))

    def _end(self, job, spec):
        """Do what the JobSet controller does when Jobs have ended."""
        name = job["metadata"]["name"]
        jobs = {each["name"]: self._job(job, each["name"]) for each in spec["replicatedJobs"]}
        failed = [task for task, state in jobs.items() if state["end"] == "Failed"]
        if failed:
            policy = spec["failurePolicy"]
            reasons = {jobs[task]["reason"] for task in failed}
            fatal = any(
                rule["action"] == "FailJobSet" and reasons & set(rule["onJobFailureReasons"])
                for rule in policy["rules"]
            )
            restarts = job["status"].get("restarts", 0)
            if fatal or restarts >= policy["maxRestarts"]:
                message = FAILED_BY_POLICY if fatal else RESTARTED_TOO_OFTEN
                first = f"(first failed job: {name}-{failed[0]}-0)"
                self._server.unset_condition(name, "RestartingJobSet")
                self._server.set_condition(name, "Failed", f"{message} {first}")
                return
            job["status"]["restarts"] = restarts + 1
            if job["kind"] == "JobSet":
                # Kubeflow Trainer does not copy this condition to a TrainJob.
                message = f"{RESTARTED} (first failed job: {name}-{failed[0]}-0)"
                self._server.set_condition(name, "RestartingJobSet", message)
            self._kubelet.terminate(self._kubelet.pods(job))
            for state in jobs.values():
                state |= _new_job(state["created"])
            return
        targets = spec["successPolicy"]["targetReplicatedJobs"]
        assert spec["successPolicy"]["operator"] == "All"
        if all(jobs[task]["end"] == "Complete" for task in targets):
            self._server.set_condition(name, "Succeeded", "jobset completed successfully")

    def _job(self, job, task):
        return self._jobs.setdefault((job["metadata"]["uid"], task), _new_job(set()))

    def _pods(self, job, task):
        label = "jobset.sigs.k8s.io/replicatedjob-name"
        return [p for p in self._kubelet.pods(job) if p["metadata"]["labels"][label] == task]

    def _status(self, job, task):
        end = self._job(job, task)["end"]
        counts = {"ready": 0, "suspended": 0, "active": int(end is None)}
        return {
            "name": task,
            "succeeded": int(end == "Complete"),
            "failed": int(end == "Failed"),
            **counts,
        }


def _new_job(created):
    return {"end": None, "reason": "", "failed": 0, "replaced": 0, "created": created}


def _index(pod):
    return int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


def action_for(pod, of_job):
    """Return the action of the first rule of a Job's pod failure policy that matches a failed pod.

    The default action is `Count`: the failure counts towards the backoff limit.
    """
    rules = of_job["podFailurePolicy"]["rules"]
    return next((rule["action"] for rule in rules if _matches(rule, pod)), "Count")


def _matches(rule, pod):
    conditions = {each["type"] for each in pod["status"]["conditions"] if each["status"] == "True"}
    if "onPodConditions" in rule:
        return any(each["type"] in conditions for each in rule["onPodConditions"])
    wanted = rule["onExitCodes"]
    for container in pod["status"].get("containerStatuses", []):
        if container["name"] == wanted["containerName"]:
            code = container["state"]["terminated"]["exitCode"]
            return code != 0 and (code in wanted["values"]) == (wanted["operator"] == "In")
    return False


def hosts(job, spec):
    """Return the names in the cluster's DNS, those of the headless service of a JobSet."""
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    name = job["metadata"]["name"]
    return {
        f"{name}-{each['name']}-0-{index}.{name}"
        for each in spec["replicatedJobs"]
        for index in range(each["template"]["spec"]["completions"])
    }


def of_train_job(job, runtimes):
    """Return the spec of the JobSet that Kubeflow Trainer makes of a TrainJob."""
    reference, trainer = job["spec"]["runtimeRef"], job["spec"]["trainer"]
    assert reference["kind"] == "ClusterTrainingRuntime"
    runtime = runtimes[reference["name"]]["spec"]
    spec = copy.deepcopy(runtime["template"]["spec"])
    [node] = spec["replicatedJobs"]
    label = "trainer.kubeflow.org/trainjob-ancestor-step"
    assert node["template"]["metadata"]["labels"][label] == "trainer"
    of_job = node["template"]["spec"]
    of_job["parallelism"] = of_job["completions"] = trainer["numNodes"]
    pod = of_job["template"]["spec"]
    [container] = pod["containers"]
    assert container["name"] == "node"
    container |= {"image": trainer["image"], "command": trainer["command"]}
    container |= {"resources": trainer.get("resourcesPerNode", {})}
    container["env"] = [*container.get("env", []), *trainer["env"]]
    for patch in job["spec"]["runtimePatches"]:
        of_set = patch["trainingRuntimeSpec"]["template"]["spec"]
        for each in of_set["replicatedJobs"]:
            assert each["name"] == node["name"]
            fields = dict(each["template"]["spec"]["template"]["spec"])
            for more in fields.pop("containers", []):
                assert more["name"] == "node" and "env" not in more
                _merge(container, more)
            _merge(pod, fields)
    return spec


def _merge(target, patch):
    """Apply a strategic merge patch to a container or to the spec of a pod."""
    for field, value in patch.items():
        key = MERGED_BY.get(field)
        if key:
            value = [*{each[key]: each for each in [*target.get(field, []), *value]}.values()]
        target[field] = value
