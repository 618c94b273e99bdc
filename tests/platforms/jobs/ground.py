"""A cluster for tests of training jobs, whose pods run scripts instead of a training."""

import sys
import threading

from platforms.jobs import follow as job_run
from platforms.jobs.client import JobClient, RetryPolicy, connect
from platforms.jobs.follow import Terms
from tests.platforms.jobs.kubelet import REPOSITORY
from tests.platforms.jobs.manifests import jobs_of, make_job, make_settings

# Short pauses between retries, and long timeouts for a slow machine.
QUICK = RetryPolicy(
    timeout=60.0, first_pause=0.01, longest_pause=0.05, request_timeout=5.0, log_timeout=0.5
)
PREAMBLE = (
    f"""
import json, os, signal, sys, time
sys.path.insert(0, {REPOSITORY!r})
from trainer_module.cluster.tf_config import set_tf_config
set_tf_config(os.environ)
"""
    + """
config = json.loads(os.environ.get("TF_CONFIG", "null"))
me = "{type} {index}".format(**config["task"]) if config else "alone"
def wait_for(word):
    while not os.path.exists(os.path.join(FOLDER, word)): time.sleep(0.01)
"""
)


class Ground:
    """A cluster, and jobs of one kind whose pods run a script.

    Attributes:
      kind: the kind of the jobs.
      path: the end of the URL of the jobs in the API.
    """

    def __init__(self, server, operator, folder, kind):
        self.kind = kind
        self.path = f"/{kind.plural}"
        self.server = server
        self.operator = operator
        self.folder = folder
        self.client = JobClient(connect(), kind, "ml", QUICK)
        self.done = True
        self.progress = ""

    def manifest(self, script="", **training):
        training = {"strategy": "multi_worker_mirrored", "workers": 2} | training
        manifest = self.kind.make_manifest(make_job(**training), "job.json", make_settings())
        for container in _containers(manifest):
            container["command"] = [
                sys.executable,
                "-uc",
                f"FOLDER = {str(self.folder)!r}" + PREAMBLE + script,
            ]
        return manifest

    def is_worker(self, pod_name):
        """Return whether a name is one of worker 0's pods, in a job with one chief."""
        return "-worker-0" in pod_name or "-node-0-1" in pod_name

    def release(self, word):
        """Let the pods continue that `wait_for` this word, so no test depends on their speed."""
        (self.folder / word).touch()

    def run(self, script="", timeout_seconds=300.0, refused_seconds=300.0, **training):
        self.run_manifest(self.manifest(script, **training), timeout_seconds, refused_seconds)

    def run_manifest(self, manifest, timeout_seconds=300.0, refused_seconds=300.0):
        terms = Terms(
            timeout_seconds=timeout_seconds,
            refused_seconds=refused_seconds,
            poll_seconds=0.05,
            is_done=lambda: self.done,
            progress=lambda: self.progress,
        )
        job_run.run(self.client, manifest, terms)

    @property
    def jobs(self):
        return list(self.server.jobs.values())


def _containers(manifest):
    if manifest["kind"] == "TrainJob":
        return [manifest["spec"]["trainer"]]
    return [template["spec"]["containers"][0] for _, _, template in jobs_of(manifest)]


def lines(log):
    return [record.getMessage() for record in log.records]


def in_background(act):
    """Call `act` in a thread; return the thread and the list of the exceptions that it raised."""
    raised = []

    def run():
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised
