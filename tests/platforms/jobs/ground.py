"""TFJobs whose pods run scripts that train nothing."""

import sys
import threading

from platforms.jobs.tfjob import run as tfjob_run
from platforms.jobs.tfjob.client import Patience, TFJobClient, connect
from platforms.jobs.tfjob.follow import Terms
from platforms.jobs.tfjob.manifest import make_manifest
from tests.platforms.jobs.test_tfjob_manifest import make_job, make_settings

# Quick where nothing is wrong; what is slow here is the machine that tests share.
QUICK = Patience(give_up=60.0, first_wait=0.01, longest_wait=0.05, request=5.0, silence=0.5)
STAND_IN = """
import json, os, signal, sys, time
config = json.loads(os.environ.get("TF_CONFIG", "null"))
me = "{type} {index}".format(**config["task"]) if config else "alone"
def wait_for(word):
    while not os.path.exists(os.path.join(FOLDER, word)): time.sleep(0.01)
"""


class Ground:
    """A cluster, and TFJobs in it whose pods run a script."""

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
                f"FOLDER = {str(self.folder)!r}" + STAND_IN + script,
            ]
        return manifest

    def tell(self, word):
        """Lets pods go on that `wait_for` this word: no test counts on how fast a pod is."""
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
    """A thread that does `act`, and what it raised."""
    raised = []

    def run():
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised
