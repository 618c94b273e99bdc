"""A cluster for tests of TFJobs, whose pods run scripts instead of a training."""

import sys
import threading

from platforms.jobs.tfjob import run as tfjob_run
from platforms.jobs.tfjob.client import RetryPolicy, TFJobClient, connect
from platforms.jobs.tfjob.follow import Terms
from platforms.jobs.tfjob.manifest import make_manifest
from tests.platforms.jobs.test_tfjob_manifest import make_job, make_settings

# Short pauses between retries, and long timeouts for a slow machine.
QUICK = RetryPolicy(
    timeout=60.0, first_pause=0.01, longest_pause=0.05, request_timeout=5.0, log_timeout=0.5
)
PREAMBLE = """
import json, os, signal, sys, time
config = json.loads(os.environ.get("TF_CONFIG", "null"))
me = "{type} {index}".format(**config["task"]) if config else "alone"
def wait_for(word):
    while not os.path.exists(os.path.join(FOLDER, word)): time.sleep(0.01)
"""


class Ground:
    """A cluster, and TFJobs whose pods run a script."""

    def __init__(self, server, operator, folder):
        self.server = server
        self.operator = operator
        self.folder = folder
        self.client = TFJobClient(connect(), "ml", QUICK)
        self.done = True
        self.progress = ""

    def manifest(self, script="", **training):
        training = {"strategy": "multi_worker_mirrored", "workers": 2} | training
        manifest = make_manifest(make_job(**training), "job.json", make_settings())
        for replica in manifest["spec"]["tfReplicaSpecs"].values():
            [container] = replica["template"]["spec"]["containers"]
            container["command"] = [
                sys.executable,
                "-uc",
                f"FOLDER = {str(self.folder)!r}" + PREAMBLE + script,
            ]
        return manifest

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
        tfjob_run.run(self.client, manifest, terms)

    @property
    def tfjobs(self):
        return list(self.server.tfjobs.values())


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
