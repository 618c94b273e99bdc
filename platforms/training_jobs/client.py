"""The requests to the Kubernetes API that a job requires, with retries, and errors of one line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import urllib3
import yaml
from absl import logging
from kubernetes.client import ApiClient, Configuration, CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from core.errors import InputError, ServerError, cause
from platforms.training_jobs.job_kind import JobKind
from platforms.training_jobs.pods import Event, Pod

SECONDS = 300.0
"""Seconds after which a call fails, all its attempts included."""
FIRST_PAUSE = 1.0
"""Seconds before the second attempt; each further pause is twice as long."""
REQUEST_SECONDS = 30.0
"""Timeout of one attempt."""
LOG_SECONDS = 60.0
"""Seconds without a new line of a log after which the request for the log is repeated."""
_LONGEST_PAUSE = 30.0
# Status codes after which a request is repeated, of the server or of a proxy. The Python client
# uses 0 for TLS errors.
_TRANSIENT = (0, 408, 429, 500, 502, 503, 504)
_EXPECTED = {"create": "AlreadyExists", "get": "NotFound", "delete": "NotFound"}
"""Verb -> the reason of the API for an error that is a result."""


class Forbidden(InputError):
    """A request that the API denies for lack of permissions; the message is one line."""


class Unreachable(ServerError, RuntimeError):
    """An API that did not respond before the timeout; the message is one line."""


class NotServed(InputError):
    """A request for a kind that the cluster does not have; the message is one line."""


def connect() -> ApiClient:
    """Return a client of this pod's cluster, or outside a pod, of the cluster in the kube config.

    Raises:
      InputError: this process does not run in a pod, and there is no valid kube config.
    """
    configuration = Configuration()
    # `JobClient` retries requests, and logs every retry.
    configuration.retries = False
    try:
        load_incluster_config(client_configuration=configuration)
    except ConfigException as no_pod:
        try:
            load_kube_config(
                # The package reads the variable only once, during its import.
                config_file=os.environ.get("KUBECONFIG") or None,
                client_configuration=configuration,
                persist_config=False,
            )
        # The last two are the errors of a YAML file that is not a kube config.
        except (ConfigException, yaml.YAMLError, OSError, LookupError, TypeError) as no_file:
            raise InputError(
                "no Kubernetes cluster to train on: this process does not run in a pod with a "
                f"service account ({str(no_pod).rstrip('.')}), and there is no valid kube config "
                f"({no_file}). Set KUBECONFIG to the path of a kube config"
            ) from None
    return ApiClient(configuration)


class JobClient:
    """The jobs of one kind in one namespace, with their pods, events and logs.

    Every method but `log` retries after transient errors, and logs each retry. It raises InputError
    if the server refuses the request, Forbidden if permissions are missing, and Unreachable if the
    server does not respond before the timeout. `urllib3.Retry` would repeat requests too, but not
    after the error 401 of an expired token, and it has no timeout for all attempts.
    """

    def __init__(self, api: ApiClient, kind: JobKind, namespace: str):
        self.kind = kind
        self.namespace = namespace
        self._custom = CustomObjectsApi(api)
        self._core = CoreV1Api(api)
        self._authenticated = False
        self._place = (kind.group, kind.version, namespace, kind.plural)

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the job; None: there is no job with this name."""
        get = self._custom.get_namespaced_custom_object
        return self._call("get", self.kind.plural, get, *self._place, name)

    def create(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """Create the job and return it; None: a job with this name exists already."""
        create = self._custom.create_namespaced_custom_object
        return self._call("create", self.kind.plural, create, *self._place, manifest)

    def delete(self, name: str, seconds: float | None = None) -> None:
        """Delete the job, if it exists; the API server removes it after its pods."""
        delete = self._custom.delete_namespaced_custom_object
        # Background deletion removes the job at once and its pods later, but the pods of the next
        # job have the same names.
        body = {"propagationPolicy": "Foreground"}
        place = (*self._place, name)
        self._call("delete", self.kind.plural, delete, *place, seconds=seconds, body=body)

    def is_served(self) -> bool:
        """Return whether the API has the kind. This request requires no permissions."""
        try:
            found = self._call("get", "APIs", self._custom.get_api_resources, *self._place[:2])
        except NotServed:
            return False
        resources = (found or {}).get("resources") or []
        return any(each["name"] == self.kind.plural for each in resources)

    def has_cluster_object(self, plural: str, name: str) -> bool:
        """Return whether a cluster-scoped object exists in the API group of the kind."""
        get = self._custom.get_cluster_custom_object
        try:
            return self._call("get", plural, get, *self._place[:2], plural, name) is not None
        except NotServed:
            return False

    def pods(self, job: dict[str, Any]) -> list[Pod]:
        """Return all pods of a job that exist, including those that were replaced."""
        list_pods = self._core.list_namespaced_pod
        selector = f"{self.kind.pod_label}={job['metadata']['name']}"
        found = self._call("list", "pods", list_pods, self.namespace, label_selector=selector)
        return [
            Pod.read(item, self.kind.replica_of(item, job), self.kind.container)
            for item in found["items"]
        ]

    def warnings(self, job_name: str) -> list[Event]:
        """Return the warnings about a job and its objects, which Kubernetes keeps for an hour.

        The names of the objects that the controllers create begin with that of the job.
        """
        list_events, selector = self._core.list_namespaced_event, "type=Warning"
        found = self._call("list", "events", list_events, self.namespace, field_selector=selector)
        events = [Event.read(item) for item in found["items"]]
        return [event for event in events if event.name.startswith(job_name)]

    def log(self, pod: str, since_seconds: int | None) -> urllib3.HTTPResponse:
        """Stream the log of a pod, with a time stamp before each line, in a single attempt.

        Raises:
          Forbidden: permissions are missing.
          ApiException, urllib3.exceptions.HTTPError: the log is not available now.
        """
        since = {} if since_seconds is None else {"since_seconds": since_seconds}
        try:
            return self._core.read_namespaced_pod_log(
                pod,
                self.namespace,
                container=self.kind.container,
                follow=True,
                timestamps=True,
                _preload_content=False,
                _request_timeout=(10.0, LOG_SECONDS),
                **since,
            )
        except ApiException as error:
            if error.status == 403 or self._has_no_credentials(error):
                self._check_refusal(error, "get", "pods/log")
            raise

    def _call(
        self,
        verb: str,
        resource: str,
        request: Callable[..., Any],
        *arguments: Any,
        seconds: float | None = None,
        **options: Any,
    ) -> Any:
        """Return the JSON of the response; None: the API responds with the error in `_EXPECTED`."""
        seconds = SECONDS if seconds is None else seconds
        deadline = time.monotonic() + seconds
        pause = FIRST_PAUSE
        # A pair, because the package ignores a single timeout that is not an integer.
        options |= {"_preload_content": False, "_request_timeout": (10.0, REQUEST_SECONDS)}
        while True:
            try:
                response = json.loads(request(*arguments, **options).data)
                self._authenticated = True
                return response
            except ApiException as error:
                refused = error.status not in (*_TRANSIENT, 401)
                if refused or self._has_no_credentials(error):
                    self._check_refusal(error, verb, resource)
                    return None
                last_error = f"{error.status} {_message_of(error)}"
            except (urllib3.exceptions.HTTPError, json.JSONDecodeError) as error:
                last_error = cause(error)
            action = f"{verb} {resource} in namespace {self.namespace}"
            if time.monotonic() + pause > deadline:
                text = f"for {seconds:.0f} s: {action} (last error: {last_error})"
                if "failed calling webhook" in last_error:
                    raise Unreachable(
                        f"{self.kind.title} refused {text}: check that {self.kind.controller} runs "
                        "in this cluster"
                    )
                raise Unreachable(f"Kubernetes API unreachable {text}")
            logging.warning("Kubernetes API: %s: %s; retrying in %.1f s", action, last_error, pause)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _has_no_credentials(self, error: ApiException) -> bool:
        """Return whether the server rejects the credentials and has never accepted them.

        After a first success, 401 is a transient error: an expired token is replaced in its file,
        which the client reads again every minute, and a starting API server may reject tokens.
        """
        return error.status == 401 and not self._authenticated

    def _check_refusal(self, error: ApiException, verb: str, resource: str) -> None:
        """Raise an error of one line for an error after which a retry is useless.

        Return if the error is the expected one of the verb.
        """
        status, message = _status(error), _message_of(error)
        request = f"{verb} {resource} in namespace {self.namespace}"
        if error.status == 401:
            raise Forbidden(
                f"Kubernetes rejects the credentials to {request}: {message}; "
                f"{self.kind.permissions}"
            ) from None
        # Quotas and admission webhooks also respond with 403, and no Role would help.
        if error.status == 403 and "cannot" in message:
            raise Forbidden(
                f"Kubernetes does not allow this step to {request}: {message}; "
                f"{self.kind.permissions}"
            ) from None
        if error.status == 404 and status.get("details", {}).get("kind") == "namespaces":
            raise InputError(f"there is no namespace {self.namespace} in this cluster") from None
        if status.get("reason") == _EXPECTED.get(verb, "none"):
            return
        if error.status == 404:
            raise NotServed(
                f"no {self.kind.title} CRD in this cluster: install {self.kind.controller} "
                f"({request}: {error.status} {message})"
            ) from None
        raise InputError(
            f"Kubernetes refuses to {request}: {error.status} {message}{self.kind.remedy(message)}"
        ) from None


def _message_of(error: ApiException) -> str:
    """Return the server's explanation of an error in one line."""
    body = error.body.decode(errors="replace") if error.body else ""
    return " ".join(str(_status(error).get("message") or body or error.reason).split())[:1000]


def _status(error: ApiException) -> dict[str, Any]:
    """Return the Status object in the body of an error; empty if there is none."""
    try:
        status = json.loads(error.body or b"")
    except ValueError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}
