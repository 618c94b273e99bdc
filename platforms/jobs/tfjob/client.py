"""The few requests to the Kubernetes API that a TFJob takes: with timeouts, and patience."""

from __future__ import annotations

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

from core.errors import InputError
from platforms.jobs.tfjob.manifest import API_GROUP, API_VERSION, CONTAINER, PLURAL
from platforms.jobs.tfjob.pods import JOB_LABEL, Event, Pod

PERMISSIONS = (
    "the step's service account takes a Role with the verbs create, get and delete on "
    f"{PLURAL} ({API_GROUP}), list on pods and events, and get on pods/log"
)

# Of the server, of a proxy before it, and 0 of the Python client for trouble with TLS.
_TRANSIENT = (0, 408, 429, 500, 502, 503, 504)


class Forbidden(InputError):
    """The API does not let this process do what it asked for; the message is one line."""


class Unreachable(RuntimeError):
    """The API did not answer for as long as we wait; the message is one line."""


@dataclass(frozen=True)
class Patience:
    """With an API that does not answer, in seconds.

    Attributes:
      give_up: after which a call fails.
      first_wait: before the second attempt; it doubles with each attempt.
      longest_wait: between two attempts.
      request: that one attempt may take.
      silence: of a log, after which it is asked for again.
    """

    give_up: float = 300.0
    first_wait: float = 1.0
    longest_wait: float = 30.0
    request: float = 30.0
    silence: float = 60.0


def connect() -> ApiClient:
    """To the cluster that this pod runs in, else to the one of the kube config.

    Raises:
      InputError: there is neither.
    """
    configuration = Configuration()
    # Attempts are made in one place, which says so in the log.
    configuration.retries = False
    try:
        load_incluster_config(client_configuration=configuration)
    except ConfigException as no_pod:
        try:
            load_kube_config(
                # The package reads the variable once, when it is imported.
                config_file=os.environ.get("KUBECONFIG") or None,
                client_configuration=configuration,
                persist_config=False,
            )
        # The last two: what is YAML, but no kube config.
        except (ConfigException, yaml.YAMLError, OSError, LookupError, TypeError) as no_file:
            raise InputError(
                "no Kubernetes cluster to train on: this process runs in no pod with a service "
                f"account ({_plain(no_pod)}), and there is no kube config ({_plain(no_file)}); "
                "name one in KUBECONFIG"
            ) from None
    return ApiClient(configuration)


class TFJobClient:
    """TFJobs of one namespace, their pods and logs.

    Every method raises InputError for what the server refuses, Forbidden if for missing
    permissions, and Unreachable; what passes by itself is tried again, and logged.
    """

    def __init__(self, api: ApiClient, namespace: str, patience: Patience | None = None):
        self.namespace = namespace
        self._patience = patience or Patience()
        self._custom = CustomObjectsApi(api)
        self._core = CoreV1Api(api)
        self._accepted = False
        # As numbers they would be taken for no limit unless they are whole.
        self._timeouts = (min(10.0, self._patience.request), self._patience.request)

    def get(self, name: str) -> dict[str, Any] | None:
        """The TFJob; None: there is none of that name."""

        def request() -> Any:
            return self._custom.get_namespaced_custom_object(
                *self._place, name, _preload_content=False, _request_timeout=self._timeouts
            )

        try:
            return self._call("get", PLURAL, request)
        except _NotFound:
            return None

    def create(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """The TFJob that was made; None: there is one of that name already."""

        def request() -> Any:
            return self._custom.create_namespaced_custom_object(
                *self._place, manifest, _preload_content=False, _request_timeout=self._timeouts
            )

        try:
            return self._call("create", PLURAL, request)
        except _AlreadyExists:
            return None

    def delete(self, name: str, give_up: float | None = None) -> None:
        """Has the TFJob deleted, if there is one; it is gone once its pods are.

        Args:
          name: of the TFJob.
          give_up: seconds after which it is left alone if the API does not answer.
        """

        def request() -> Any:
            return self._custom.delete_namespaced_custom_object(
                *self._place,
                name,
                # In the background it would be gone at once, and its pods some time later: those
                # of the next TFJob have the same names.
                body={"propagationPolicy": "Foreground"},
                _preload_content=False,
                _request_timeout=self._timeouts,
            )

        try:
            self._call("delete", PLURAL, request, give_up)
        except _NotFound:
            return

    def pods(self, name: str) -> list[Pod]:
        """Those that the operator has made of a TFJob and that still are there."""

        def request() -> Any:
            return self._core.list_namespaced_pod(
                self.namespace,
                label_selector=f"{JOB_LABEL}={name}",
                _preload_content=False,
                _request_timeout=self._timeouts,
            )

        return [Pod.read(item) for item in self._call("list", "pods", request)["items"]]

    def warnings(self, uid: str) -> list[Event]:
        """Return the warnings that Kubernetes keeps about one object, for an hour.

        Args:
          uid: of the TFJob or pod.
        """

        def request() -> Any:
            return self._core.list_namespaced_event(
                self.namespace,
                field_selector=f"involvedObject.uid={uid},type=Warning",
                _preload_content=False,
                _request_timeout=self._timeouts,
            )

        return [Event.read(item) for item in self._call("list", "events", request)["items"]]

    def log(self, pod: str, since_seconds: int | None) -> urllib3.HTTPResponse:
        """The log of a pod as it is written, each line after its time; one attempt.

        Args:
          pod: name of it.
          since_seconds: how far back it begins; None: at its start.

        Raises:
          Forbidden: see above.
          ApiException, urllib3.exceptions.HTTPError: there is no log to be had at this moment.
        """
        since = {} if since_seconds is None else {"since_seconds": since_seconds}
        try:
            return self._core.read_namespaced_pod_log(
                pod,
                self.namespace,
                container=CONTAINER,
                follow=True,
                timestamps=True,
                _preload_content=False,
                _request_timeout=(self._timeouts[0], self._patience.silence),
                **since,
            )
        except ApiException as error:
            if error.status == 403 or self._has_no_credentials(error):
                raise self._refusal("get", "pods/log", error) from None
            raise

    @property
    def _place(self) -> tuple[str, str, str, str]:
        return API_GROUP, API_VERSION, self.namespace, PLURAL

    def _call(
        self, verb: str, resource: str, request: Callable[[], Any], give_up: float | None = None
    ) -> Any:
        """The JSON that the server answers."""
        limit = self._patience.give_up if give_up is None else give_up
        deadline = time.monotonic() + limit
        wait = self._patience.first_wait
        while True:
            asked_to_wait = 0.0
            try:
                answer = json.loads(request().data)
                self._accepted = True
                return answer
            except ApiException as error:
                refused = error.status not in (*_TRANSIENT, 401)
                if refused or self._has_no_credentials(error):
                    raise self._refusal(verb, resource, error) from None
                trouble = f"{error.status} {_said(error)}"
                asked_to_wait = _retry_after(error)
            except (urllib3.exceptions.HTTPError, json.JSONDecodeError) as error:
                trouble = f"{type(error).__name__}: {_plain(error)}"
            pause = max(wait, min(asked_to_wait, self._patience.longest_wait))
            doing = f"Kubernetes API: {verb} {resource} in namespace {self.namespace}: {trouble}"
            if time.monotonic() + pause > deadline:
                raise Unreachable(f"{doing}; so it went for {limit:.0f} s")
            logging.warning("%s; trying again in %.1f s", doing, pause)
            time.sleep(pause)
            wait = min(2 * wait, self._patience.longest_wait)

    def _has_no_credentials(self, error: ApiException) -> bool:
        """Whether the credentials were never accepted.

        A token that expired is replaced in its file, which the client reads again every minute;
        and an API server that starts may take no token yet.
        """
        return error.status == 401 and not self._accepted

    def _refusal(self, verb: str, resource: str, error: ApiException) -> Exception:
        status, said = _status(error), _said(error)
        doing = f"{verb} {resource} in namespace {self.namespace}"
        if error.status == 401:
            return Forbidden(f"Kubernetes accepts no credentials to {doing}: {said}; {PERMISSIONS}")
        # Quotas and admission webhooks forbid too, and no Role would help.
        if error.status == 403 and "cannot" in said:
            return Forbidden(f"Kubernetes forbids to {doing}: {said}; {PERMISSIONS}")
        if error.status == 404:
            if status.get("details", {}).get("kind") == "namespaces":
                return InputError(f"there is no namespace {self.namespace} in this cluster")
            if verb != "create" and status.get("reason") == "NotFound":
                return _NotFound()
            return InputError(
                "no TFJob CRD in this cluster: install the Kubeflow training operator v1 "
                f"({doing}: {error.status} {said})"
            )
        if error.status == 409 and status.get("reason") == "AlreadyExists":
            return _AlreadyExists()
        return InputError(f"Kubernetes refuses to {doing}: {error.status} {said}")


class _NotFound(Exception):
    """There is no TFJob of that name."""


class _AlreadyExists(Exception):
    """There is a TFJob of that name."""


def _status(error: ApiException) -> dict[str, Any]:
    """The Status object that the server explains an error with; empty: it sent none."""
    try:
        status = json.loads(error.body or b"")
    except ValueError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _said(error: ApiException) -> str:
    body = error.body.decode(errors="replace") if error.body else ""
    return " ".join(str(_status(error).get("message") or body or error.reason).split())[:1000]


def _retry_after(error: ApiException) -> float:
    """Seconds that the server asks to wait."""
    text = (error.headers or {}).get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0


def _plain(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
