"""A test double of Kueue, which suspends the jobs with its label until their queue admits them."""

from platforms.jobs.pod_template import QUEUE_LABEL


class Kueue:
    """Suspends each new job that names a queue."""

    def __init__(self, server):
        self._server = server
        server.on_create = self._suspend_if_queued

    def admit(self, job):
        self._set_suspend(job, False)

    def evict(self, job):
        """Suspend an admitted job, as for a workload of a higher priority."""
        self._set_suspend(job, True)

    def _suspend_if_queued(self, job):
        if QUEUE_LABEL in job["metadata"]["labels"]:
            self._set_suspend(job, True)

    def _set_suspend(self, job, suspend):
        with self._server.lock:
            spec = job["spec"]
            (spec["runPolicy"] if job["kind"] == "TFJob" else spec)["suspend"] = suspend
