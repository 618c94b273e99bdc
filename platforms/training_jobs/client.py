"""The requests to the Kubernetes API for a training job, with retries and errors of one line."""

from __future__ import annotations

import functools
import json
import time
from typing import Any

import urllib3
from absl import logging
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

from core.errors import InputError, ServerError, cause
from core.retry_after import retry_after
from platforms.kubernetes_api import error_status, server_message
from platforms.kubernetes_objects import Object
from platforms.training_jobs.job import KubernetesJobSettings
from platforms.training_jobs.kinds import JOBSET, KINDS, TFJOB, JobKind
from platforms.training_jobs.pods import Pod

SECONDS = 300.0
"""Timeout of a request with all its attempts."""
FIRST_PAUSE = 1.0
"""Seconds before the second attempt; each further pause is twice as long."""
_LONGEST_PAUSE = 30.0
_TRANSIENT = (0, 401, 408, 429, 500, 502, 503, 504)
"""The status codes of the API server, or of a proxy, after which a request is repeated. 0 is the
Python client's code for TLS errors. 401 may be temporary: the Python client reads the file of an
expired token again, and an API server that starts may reject tokens."""
_EXPECTED = {"POST": "AlreadyExists", "GET": "NotFound", "DELETE": "NotFound"}
"""Method -> the reason in an error of the API that is an ordinary result."""


class Unreachable(ServerError):
    """An API that did not respond before the timeout."""


class JobClient:
    """The jobs of one kind in one namespace, with their pods, events and logs.

    Every method except `log` retries its request after transient errors, and logs each error.

    Attributes:
      kind: the kind of the jobs.
      namespace: the namespace of the jobs and of their pods.
    """

    def __init__(self, api: ApiClient, kind: JobKind, namespace: str):
        """Construct a client, without a request to the API.

        Args:
          api: the connection to the cluster, see `platforms.kubernetes_api.connect`.
          kind: the kind of the jobs.
          namespace: the namespace of the jobs and of their pods.
        """
        self.kind = kind
        self.namespace = namespace
        self._request = functools.partial(
            api.call_api,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _return_http_data_only=True,
        )
        self._jobs = f"/apis/{kind.group}/{kind.version}/namespaces/{namespace}/{kind.name}s"
        self._core = f"/api/v1/namespaces/{namespace}"

    def get(self, name: str) -> Object | None:
        """Return a job; None if there is none with this name.

        Args:
          name: the name of the job.

        Raises:
          InputError: the API refuses the request, or has no jobs of this kind.
          Unreachable: the API does not respond before the timeout.
        """
        return self._call("GET", f"{self._jobs}/{name}")

    def create(self, manifest: Object) -> Object | None:
        """Create a job and return it; None if a job with this name exists already.

        Args:
          manifest: the object to create.

        Raises:
          InputError: the API refuses the job, for example because of an unknown field.
          Unreachable: the API does not respond before the timeout.
        """
        # By default the API server drops fields that the CRD does not define.
        return self._call("POST", self._jobs, {"fieldValidation": "Strict"}, manifest)

    def delete(self, name: str, seconds: float | None = None) -> None:
        """Request the deletion of a job, if it exists. The API server deletes its pods first.

        Args:
          name: the name of the job.
          seconds: the timeout of the request with all its attempts; None: `SECONDS`.

        Raises:
          InputError: the API refuses the request.
          Unreachable: the API does not respond before the timeout.
        """
        # With background deletion the pods would still exist after the job, and the pods of the
        # next job have the same names.
        body = {"propagationPolicy": "Foreground"}
        self._call("DELETE", f"{self._jobs}/{name}", body=body, seconds=seconds)

    def pods(self, job: Object) -> list[Pod]:
        """Return all pods of a job that exist, including those that were replaced.

        Args:
          job: the job, or the manifest from which it is created.

        Raises:
          InputError: the API refuses the request.
          Unreachable: the API does not respond before the timeout.
        """
        selector = f"{self.kind.job_label}={job['metadata']['name']}"
        found = self._call("GET", f"{self._core}/pods", {"labelSelector": selector})
        return [
            Pod.read(item, self.kind.find_replica(item, job), self.kind.container)
            for item in found["items"]
        ]

    def warnings(self, job: Object) -> list[Object]:
        """Return the warnings about a job and its objects, which Kubernetes keeps for an hour.

        Args:
          job: the job, or the manifest from which it is created.

        Returns:
          The events of the API, the oldest first.

        Raises:
          InputError: the API refuses the request.
          Unreachable: the API does not respond before the timeout.
        """
        found = self._call("GET", f"{self._core}/events", {"fieldSelector": "type=Warning"})
        events = sorted(found["items"], key=_created_at)
        # The names of a job's objects begin with the name of the job. An event that is older than
        # the job belongs to an earlier job with the same name.
        name = job["metadata"]["name"]
        return [
            event
            for event in events
            if event["involvedObject"].get("name", "").startswith(name)
            and _created_at(event) >= _created_at(job)
        ]

    def log(self, pod: str) -> urllib3.HTTPResponse:
        """Return a stream of the log of a pod, with a time stamp before each line.

        The request has a single attempt.

        Args:
          pod: the name of the pod.

        Raises:
          ApiException, urllib3.exceptions.HTTPError: the log is not available now.
        """
        query = {"container": self.kind.container, "follow": "true", "timestamps": "true"}
        path = f"{self._core}/pods/{pod}/log"
        return self._request(path, "GET", query_params=query, _request_timeout=(10.0, 600.0))

    def _call(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        body: Object | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Return the JSON of the response; None if the API responds with the error in `_EXPECTED`.

        Args:
          method: GET, POST or DELETE.
          path: the path of the URL.
          query: the parameters of the URL.
          body: the JSON of the request.
          seconds: the timeout of all attempts together; None: `SECONDS`.

        Raises:
          InputError: the API refuses the request.
          Unreachable: the API does not respond before the timeout.
        """
        # A plain loop: urllib3.Retry has no timeout for all attempts, and google.api_core.retry no
        # Retry-After.
        seconds = SECONDS if seconds is None else seconds
        deadline = time.monotonic() + seconds
        pause = FIRST_PAUSE
        # A pair, because the package ignores a single timeout that is not an integer.
        options = {"query_params": query or {}, "_request_timeout": (10.0, 30.0)}
        while True:
            requested = 0.0
            try:
                return json.loads(self._request(path, method, body=body, **options).data)
            except ApiException as error:
                if error_status(error).get("reason") == _EXPECTED[method]:
                    return None
                problem = f"{method} {path}: {error.status} {server_message(error)}"
                if error.status not in _TRANSIENT:
                    raise self._refusal(error, problem) from None
                requested = retry_after(error.headers)
            except (urllib3.exceptions.HTTPError, json.JSONDecodeError) as error:
                problem = f"{method} {path}: {cause(error)}"
            wait = max(pause, requested)
            if requested > seconds:
                raise Unreachable(
                    f"Kubernetes API requires a pause of {requested:.0f} s: {problem}"
                )
            if time.monotonic() + wait > deadline:
                raise Unreachable(f"Kubernetes API failed for {seconds:.0f} s: {problem}")
            logging.warning("Kubernetes API: %s; retrying in %.1f s", problem, wait)
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _refusal(self, error: ApiException, problem: str) -> InputError:
        """Return the error of a refused request, with its remedy if there is one."""
        # Quotas and admission webhooks respond with 403 too, but a Role is not their remedy.
        if error.status == 403 and "cannot" in problem:
            guide = "the Role that this step requires is in docs/how-to/kubeflow.md"
            return InputError(f"Kubernetes forbids {problem}; {guide}")
        if error.status == 404 and not error_status(error):
            crd = self.kind.title
            controller = self.kind.controller
            return InputError(f"no {crd} CRD in this cluster; it belongs to {controller}")
        return InputError(f"Kubernetes refuses {problem}")


def supported_kind(api: ApiClient, settings: KubernetesJobSettings) -> JobKind:
    """Return the kind of job in the settings; for `auto` the first kind that is available.

    `auto` selects a TFJob, or else a JobSet. It never selects a TrainJob, from which Kubeflow
    Trainer would create a JobSet. A JobSet of ours requires no runtime, and assigns GPUs only to
    the replicas that use them.

    Args:
      api: the connection to the cluster.
      settings: the kind and the namespace of the job.

    Raises:
      InputError: the cluster has no such kind, or this step has no permission for it.
      Unreachable: the API does not respond before the timeout.
    """
    if settings.kind != "auto":
        return next(kind for kind in KINDS if kind.name == settings.kind)
    reasons = []
    for kind in (TFJOB, JOBSET):
        try:
            JobClient(api, kind, settings.namespace).get("any")
        except InputError as error:
            reasons.append(str(error))
        else:
            logging.info("kubeflow.training_job auto: %s", "; ".join([kind.name, *reasons]))
            return kind
    raise InputError(f"this cluster cannot train on several machines: {'; '.join(reasons)}")


def _created_at(item: Object) -> str:
    return item["metadata"].get("creationTimestamp") or ""
