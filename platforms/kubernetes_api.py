"""The connection to the API of a Kubernetes cluster, and the messages of its errors."""

from __future__ import annotations

import json
import os

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from core.errors import InputError
from platforms.kubernetes_objects import Object


def connect() -> ApiClient:
    """Return a client of the cluster of this pod, or outside a pod of that in the kube config.

    Raises:
      InputError: this process does not run in a pod, and there is no valid kube config.
    """
    configuration = Configuration()
    # The callers retry requests themselves, or try the next poll.
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
        except Exception as no_file:  # A wrong file can raise any exception.
            raise InputError(
                "no Kubernetes cluster: this process does not run in a pod with a "
                f"service account ({no_pod}), and there is no valid kube config ({no_file}). Set "
                "KUBECONFIG to the path of a kube config"
            ) from None
    return ApiClient(configuration)


def error_status(error: ApiException) -> Object:
    """Return the Status object in the body of an error; empty if there is none."""
    try:
        status = json.loads(error.body or b"")
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def server_message(error: ApiException) -> str:
    """Return the server's message about an error, at most 1,000 characters.

    Args:
      error: the error of the Python client of Kubernetes.
    """
    body = error.body.decode(errors="replace") if error.body else ""
    return str(error_status(error).get("message") or body or error.reason)[:1000]
