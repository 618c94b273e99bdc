"""The controllers of all kinds of jobs, as one thread."""

import threading
import time

from tests.platforms.jobs.job_sets import JobSets
from tests.platforms.jobs.kubelet import Kubelet
from tests.platforms.jobs.refused import Refused
from tests.platforms.jobs.training_operator import TrainingOperator

FIRST_WAIT, LONGEST_WAIT = 0.05, 1000
"""Seconds before the first and before the last retry to create a refused pod."""


class Operator(Kubelet):
    """Reconciles every job of the server until it is closed."""

    def __init__(self, server):
        super().__init__(server)
        # A job is deleted after its pods.
        server.on_delete = lambda job: None
        job_sets = JobSets(self)
        self._controllers = {
            "TFJob": TrainingOperator(self),
            "JobSet": job_sets,
            "TrainJob": job_sets,
        }
        self._waits = {}
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._reconcile_for_ever, daemon=True)
        self._ticker.start()

    def close(self):
        self._ended.set()
        self._ticker.join()
        super().close()

    def _reconcile_for_ever(self):
        while not self._ended.wait(0.05):
            with self.server.lock:
                for job in list(self.server.jobs.values()):
                    self._reconcile(job)

    def _reconcile(self, job):
        for pod in self.pods(job):
            self.update(pod)
        if "deletionTimestamp" in job["metadata"]:
            self.terminate(self.pods(job))
            if not self.pods(job):
                del self.server.jobs[job["metadata"]["name"]]
                self.forget(job)
            return
        uid = job["metadata"]["uid"]
        wait, again_at = self._waits.get(uid, (FIRST_WAIT, 0.0))
        if time.monotonic() < again_at:
            return
        try:
            self._controllers[job["kind"]].reconcile(job)
        except Refused:
            self._waits[uid] = min(2 * wait, LONGEST_WAIT), time.monotonic() + wait
