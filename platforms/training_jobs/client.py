"""The requests to the Kubernetes API that a job requires, with retries, and errors of one line."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import urllib3
import yaml
from absl import logging
from kubernetes.client import ApiClient, Configuration, CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from core.errors import InputError, ServerError
from platforms.training_jobs.kind import JobKind
from platforms.training_jobs.pods import Event, Pod

# Status codes after which a request is repeated, of the server or of a proxy. The Python client
# uses 0 for TLS errors.
_TRANSIENT = (0, 408, 429, 500, 502, 503, 504)


class Forbidden(InputError):
    """A request that the API denies for lack of permissions; the message is one line."""


class Unreachable(ServerError, RuntimeError):
    """An API that did not respond before the timeout; the message is one line."""


class NotServed(InputError):
    """A request for a kind that the cluster does not have; the message is one line."""


class NotFound(Exception):
    """A request for an object that does not exist."""


class AlreadyExists(Exception):
    """A request to create a job with the name of an existing job."""


@dataclass(frozen=True)
class RetryPolicy:
    """Timeouts and pauses of requests, in seconds.

    Attributes:
      timeout: time after which a call fails, all its attempts included.
      first_pause: pause before the second attempt; each further pause is twice as long.
      longest_pause: longest pause between two attempts.
      request_timeout: timeout of one attempt.
      log_timeout: time without a new line of a log after which the request for the log is repeated.
    """

    timeout: float = 300.0
    first_pause: float = 1.0
    longest_pause: float = 30.0
    request_timeout: float = 30.0
    log_timeout: float = 60.0


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
                f"service account ({one_line(no_pod)}), and there is no valid kube config "
                f"({one_line(no_file)}). Set KUBECONFIG to the path of a kube config"
            ) from None
    return ApiClient(configuration)


class JobClient:
    """The jobs of one kind in one namespace, with their pods, events and logs.

    Every method but `log` retries after transient errors, and logs each retry. It raises InputError
    if the server refuses the request, Forbidden if permissions are missing, and Unreachable if the
    server does not respond before the timeout.
    """

    def __init__(
        self, api: ApiClient, kind: JobKind, namespace: str, retries: RetryPolicy | None = None
    ):
        self.kind = kind
        self.namespace = namespace
        self._api = api
        self._retries = retries or RetryPolicy()
        self._custom = CustomObjectsApi(api)
        self._core = CoreV1Api(api)
        self._accepted = False
        # A pair, because the package ignores a single timeout that is not an integer.
        request_timeout = self._retries.request_timeout
        self._timeouts = (min(10.0, request_timeout), request_timeout)

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the job; None: there is no job with this name."""
        get = self._custom.get_namespaced_custom_object
        try:
            return self._call("get", self.kind.plural, get, *self._place, name)
        except NotFound:
            return None

    def create(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """Create the job and return it; None: a job with this name exists already."""
        create = self._custom.create_namespaced_custom_object
        try:
            return self._call("create", self.kind.plural, create, *self._place, manifest)
        except AlreadyExists:
            return None

    def delete(self, name: str, timeout: float | None = None) -> None:
        """Delete the job, if it exists; the API server removes it after its pods.

        Args:
          name: the name of the job.
          timeout: seconds, all attempts included; None: that of the RetryPolicy.
        """
        delete = self._custom.delete_namespaced_custom_object
        # Background deletion removes the job at once and its pods later, but the pods of the next
        # job have the same names.
        body = {"propagationPolicy": "Foreground"}
        with contextlib.suppress(NotFound):
            self._call(
                "delete", self.kind.plural, delete, *self._place, name, timeout=timeout, body=body
            )

    def is_served(self) -> bool:
        """Return whether the API has the kind. This request requires no permissions."""
        try:
            found = self._call_path("APIs", "")
        except (NotServed, NotFound):
            return False
        return any(each["name"] == self.kind.plural for each in found.get("resources") or [])

    def has_cluster_object(self, plural: str, name: str) -> bool:
        """Return whether a cluster-scoped object exists in the API group of the kind."""
        try:
            self._call_path(plural, f"/{plural}/{name}")
        except (NotServed, NotFound):
            return False
        return True

    def pods(self, job: dict[str, Any]) -> list[Pod]:
        """Return all pods of a job that exist, including those that were replaced."""
        selector = f"{self.kind.pod_label}={job['metadata']['name']}"
        found = self._call(
            "list", "pods", self._core.list_namespaced_pod, self.namespace, label_selector=selector
        )
        return [
            Pod.read(item, self.kind.replica_of(item, job), self.kind.container)
            for item in found["items"]
        ]

    def warnings(self, **of: str) -> list[Event]:
        """Return the warnings about one object, which Kubernetes keeps for an hour.

        Args:
          of: `uid`, or `kind` and `name` of the object.
        """
        fields = [*(f"involvedObject.{key}={value}" for key, value in of.items()), "type=Warning"]
        list_events, selector = self._core.list_namespaced_event, ",".join(fields)
        found = self._call("list", "events", list_events, self.namespace, field_selector=selector)
        return [Event.read(item) for item in found["items"]]

    def log(self, pod: str, since_seconds: int | None) -> urllib3.HTTPResponse:
        """Stream the log of a pod, with a time stamp before each line, in a single attempt.

        Args:
          pod: the name of the pod.
          since_seconds: age of the first line; None: the whole log.

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
                _request_timeout=(self._timeouts[0], self._retries.log_timeout),
                **since,
            )
        except ApiException as error:
            if error.status == 403 or self._has_no_credentials(error):
                raise _refusal(error, self.kind, "get", "pods/log", self.namespace) from None
            raise

    @property
    def _place(self) -> tuple[str, str, str, str]:
        return self.kind.group, self.kind.version, self.namespace, self.kind.plural

    def _call_path(self, resource: str, path: str) -> Any:
        """Get a path below that of the API group of the kind."""
        return self._call(
            "get",
            resource,
            self._api.call_api,
            f"/apis/{self.kind.group}/{self.kind.version}{path}",
            "GET",
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
        )

    def _call(
        self,
        verb: str,
        resource: str,
        request: Callable[..., Any],
        *arguments: Any,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Return the JSON of the response, with retries after transient errors."""
        options |= {"_preload_content": False, "_request_timeout": self._timeouts}
        timeout = self._retries.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout
        pause = self._retries.first_pause
        while True:
            requested_pause = 0.0
            try:
                response = json.loads(request(*arguments, **options).data)
                self._accepted = True
                return response
            except ApiException as error:
                refused = error.status not in (*_TRANSIENT, 401)
                if refused or self._has_no_credentials(error):
                    raise _refusal(error, self.kind, verb, resource, self.namespace) from None
                last_error = f"{error.status} {_message_of(error)}"
                requested_pause = min(_retry_after(error), self._retries.longest_pause)
            except (urllib3.exceptions.HTTPError, json.JSONDecodeError) as error:
                last_error = f"{type(error).__name__}: {one_line(error)}"
            seconds = max(pause, requested_pause)
            action = f"{verb} {resource} in namespace {self.namespace}"
            if time.monotonic() + seconds > deadline:
                text = f"for {timeout:.0f} s: {action} (last error: {last_error})"
                if "failed calling webhook" in last_error:
                    raise Unreachable(
                        f"{self.kind.title} refused {text}: check that {self.kind.controller} runs "
                        "in this cluster"
                    )
                raise Unreachable(f"Kubernetes API unreachable {text}")
            logging.warning(
                "Kubernetes API: %s: %s; retrying in %.1f s", action, last_error, seconds
            )
            time.sleep(seconds)
            pause = min(2 * pause, self._retries.longest_pause)

    def _has_no_credentials(self, error: ApiException) -> bool:
        """Return whether the server rejects the credentials and has never accepted them.

        After a first success, 401 is a transient error: an expired token is replaced in its file,
        which the client reads again every minute, and a starting API server may reject tokens.
        """
        return error.status == 401 and not self._accepted


def _refusal(
    error: ApiException, kind: JobKind, verb: str, resource: str, namespace: str
) -> Exception:
    """Convert an error after which a retry is useless.

    Args:
      error: the error of the client library.
      kind: the kind of the job.
      verb, resource: the request, such as `create` and `tfjobs`.
      namespace: the namespace of the request.

    Returns:
      A NotFound, NotServed, AlreadyExists, Forbidden or InputError.
    """
    status, message = _status(error), _message_of(error)
    request = f"{verb} {resource} in namespace {namespace}"
    if error.status == 401:
        return Forbidden(
            f"Kubernetes rejects the credentials to {request}: {message}; {kind.permissions}"
        )
    # Quotas and admission webhooks also respond with 403, and no Role would help.
    if error.status == 403 and "cannot" in message:
        return Forbidden(
            f"Kubernetes does not allow this step to {request}: {message}; {kind.permissions}"
        )
    if error.status == 404:
        if status.get("details", {}).get("kind") == "namespaces":
            return InputError(f"there is no namespace {namespace} in this cluster")
        if verb != "create" and status.get("reason") == "NotFound":
            return NotFound()
        return NotServed(
            f"no {kind.title} CRD in this cluster: install {kind.controller} "
            f"({request}: {error.status} {message})"
        )
    if error.status == 409 and status.get("reason") == "AlreadyExists":
        return AlreadyExists()
    return InputError(
        f"Kubernetes refuses to {request}: {error.status} {message}{kind.remedy(message)}"
    )


def _message_of(error: ApiException) -> str:
    """Return the server's explanation of an error in one line."""
    body = error.body.decode(errors="replace") if error.body else ""
    return " ".join(str(_status(error).get("message") or body or error.reason).split())[:1000]


def _retry_after(error: ApiException) -> float:
    """Return the seconds in the header Retry-After of an error; 0.0 without the header."""
    text = (error.headers or {}).get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0


def one_line(error: Exception) -> str:
    """Return the message of an exception without line breaks and without a period at the end."""
    return " ".join(str(error).split()).rstrip(".")


def _status(error: ApiException) -> dict[str, Any]:
    """Return the Status object in the body of an error; empty if there is none."""
    try:
        status = json.loads(error.body or b"")
    except ValueError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}
