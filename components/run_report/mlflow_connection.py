"""The connection to MLflow: a client with short timeouts, and errors in the words of a setting."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.errors import (
    ConfigError,
    ServerError,
    UserError,
    cause,
    error_chain,
    storage_errors,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient

CLIENT = "mlflow-skinny>=3.17,<4"
"""The package of MLflow's client, as in `pyproject.toml`."""
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_ENVIRONMENT = {
    # For HTTP 429 and 5xx. `connected` has already failed if the server does not respond.
    _RETRIES: "3",
    # A server may require a delay of hours.
    "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
_OF_CONNECTIONS = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)
"""OSErrors that are not those of a file."""


def check_client() -> None:
    """Check that MLflow's client is installed.

    Raises:
      ConfigError: MLflow is not installed.
    """
    if importlib.util.find_spec("mlflow") is None:
        raise ConfigError(
            f"tracking.mlflow: MLflow is not installed; run pip install '{CLIENT}', or build the "
            "image by `amazon-reviews image build`"
        )


@contextlib.contextmanager
def connected(uri: str) -> Iterator[MlflowClient]:
    """Yield a client of MLflow with short timeouts.

    The first request has no retries, so the error for a server that does not respond takes one
    timeout. Later requests have retries after HTTP 429 and 5xx.

    Args:
      uri: the URI of the tracking server.

    Raises:
      ServerError: a request, in this function or in the context, failed, or a file could not be
        read or written.
      UserError: the context raised it.
    """
    os.environ.update({**_ENVIRONMENT, **os.environ})
    try:
        import mlflow

        mlflow.set_tracking_uri(uri)
        client = mlflow.MlflowClient()
        _check_response(client)
        yield client
    except UserError:
        raise
    except Exception as error:  # MLflow raises the errors of many libraries.
        if _is_of_a_file(error):
            raise ServerError(
                "tracking.mlflow: a file of this machine or of the run could not be read or "
                f"written: {cause(error)}"
            ) from None
        if does_not_respond(error):
            raise ServerError(
                f"tracking.mlflow: {uri} does not respond ({cause(_root(error))}); start the "
                "server or correct the address"
            ) from None
        raise ServerError(f"tracking.mlflow: {uri}: {cause(error)}") from None


def does_not_respond(error: BaseException) -> bool:
    """Return whether a request of MLflow's client failed without a response.

    Args:
      error: the error of the request.
    """
    import requests

    of_requests = (requests.ConnectionError, requests.Timeout)
    return any(isinstance(each, of_requests) for each in error_chain(error))


def _check_response(client: MlflowClient) -> None:
    """Raise the error of MLflow's client if the server does not respond within one timeout."""
    configured = os.environ[_RETRIES]
    os.environ[_RETRIES] = "0"
    try:
        client.search_experiments(max_results=1)
    except Exception as error:
        # The next requests handle any other error.
        if does_not_respond(error):
            raise
    finally:
        os.environ[_RETRIES] = configured


def _root(error: BaseException) -> BaseException:
    """Return the first error of a chain, such as that of the socket."""
    *_, root = error_chain(error)
    return root


def _is_of_a_file(error: Exception) -> bool:
    """Return whether an error is one of a file. Those of connections are OSErrors too."""
    import requests

    of_connections = (requests.RequestException, *_OF_CONNECTIONS)
    return isinstance(error, storage_errors()) and not isinstance(error, of_connections)
