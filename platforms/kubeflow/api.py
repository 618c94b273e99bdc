"""The REST API of Kubeflow Pipelines, and its errors in terms of the settings.

`kfp.Client` is not used. Its requests have no timeout. Its check of a server that is down takes
half a minute and prints five tracebacks. It does not handle a lost response.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
import urllib3
from absl import logging

from core.errors import ConfigError, ServerError
from core.retry_after import retry_after
from pipeline.config import PipelineConfig
from platforms.clusters import cluster_name
from platforms.follow import NoResponse, possibly_submitted

PORT_FORWARD = "kubectl port-forward -n kubeflow svc/ml-pipeline-ui 8080:80"
"""The command that makes Kubeflow Pipelines reachable from this machine. The UI forwards requests
to the API, and also serves the web page of a run."""
CONNECT_AND_READ_SECONDS = (5.0, 60.0)
"""Timeouts of a request, of the connection and of each read."""
UI_VARIABLE = "KF_PIPELINES_UI_ENDPOINT"
TOKEN_VARIABLE = "KF_PIPELINES_SA_TOKEN_PATH"
"""The variable with the path of a file with a user's token. `kfp.Client` reads both variables."""
_TOKEN_OF_POD = "/var/run/secrets/kubeflow/pipelines/token"
_API = "apis/v2beta1"
_EQUALS = 1
_CONFLICT = 409
"""The HTTP status for an object that exists already."""
RATE_LIMIT_SECONDS = 60.0
"""Timeout of all attempts of a request together, if the server limits the rate."""
FIRST_PAUSE = 1.0
"""Seconds before the second attempt; each further pause is twice as long."""


class TooManyRequests(NoResponse):
    """A request that the server has refused in several attempts, because of its rate limit."""


class ServerFailure(NoResponse):
    """A response with HTTP 500 or more: the server, or one behind it, does not work at the time."""


class Refused(ServerError):
    """A request that the server refused.

    Attributes:
      status: the HTTP status.
    """

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


class _RateLimit(Exception):
    """A response with HTTP 429.

    Attributes:
      seconds: the pause that the server requests, or 0.
    """

    def __init__(self, message: str, seconds: float):
        super().__init__(message)
        self.seconds = seconds


class Api:
    """The REST API of Kubeflow Pipelines, which is called with a method and a path.

    Args:
      config: the settings with `kubeflow.endpoint`.

    Attributes:
      endpoint: the URL of the server, without a slash at its end.
    """

    def __init__(self, config: PipelineConfig):
        self.endpoint = (config.kubeflow.endpoint or "").rstrip("/")
        self._session = requests.Session()
        # The endpoint is often a port-forward on this machine, which no proxy can reach.
        self._session.trust_env = False

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object of the response; repeat the request while its rate is limited.

        Args:
          method: the HTTP method.
          path: the path of the URL below `apis/v2beta1/`.
          body: the JSON of the request; None: no body.
          query: the parameters of the URL.

        Raises:
          TooManyRequests: the rate is limited for longer than `RATE_LIMIT_SECONDS`.
          ServerFailure: the server responds with HTTP 500 or more.
          NoResponse: there is no response.
          Refused: the server refuses the request.
          ConfigError: the endpoint is not the URL of a host, its certificate cannot be verified, it
            does not support TLS, or the file at $KF_PIPELINES_SA_TOKEN_PATH is missing or contains
            no token.
        """
        deadline, pause = time.monotonic() + RATE_LIMIT_SECONDS, FIRST_PAUSE
        while True:
            try:
                return self._request(method, path, body, query)
            except _RateLimit as limit:
                wait = max(pause, limit.seconds)
                if time.monotonic() + wait > deadline:
                    raise TooManyRequests(str(limit)) from None
                logging.warning("Kubeflow Pipelines: %s; retrying in %.1f s", limit, wait)
                time.sleep(wait)
                pause *= 2

    def _request(
        self, method: str, path: str, body: Any, query: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        token = _token()
        try:
            response = self._session.request(
                method,
                f"{self.endpoint}/{_API}/{path}",
                params=query,
                json=body,
                headers={"Authorization": f"Bearer {token}"} if token else {},
                timeout=CONNECT_AND_READ_SECONDS,
            )
        # urllib3 raises the first one itself for a host such as a..b.
        except (urllib3.exceptions.LocationValueError, requests.exceptions.InvalidURL) as error:
            raise ConfigError(
                f"kubeflow.endpoint: {self.endpoint} is not the URL of a host ({error}); set the "
                "URL of the Kubeflow Pipelines API, such as http://127.0.0.1:8080"
            ) from None
        except requests.exceptions.SSLError as error:
            if problem := _tls_problem(_reason(error)):
                raise ConfigError(f"kubeflow.endpoint: {self.endpoint} {problem}") from None
            raise NoResponse(_reason(error)) from None
        except requests.RequestException as error:
            raise NoResponse(_reason(error)) from None
        status, text = response.status_code, response.text
        try:
            answer = response.json()
        except ValueError:
            answer = "" if text.lstrip().startswith("<") else text
        if isinstance(answer, dict):
            if response.ok:
                return answer
            answer = answer.get("message") or answer.get("error")
        elif response.ok:
            raise Refused("404 a web page, perhaps a login page", 404)
        message = f"{status} {answer or response.reason}"
        if status == 429:
            raise _RateLimit(message, retry_after(response.headers))
        if status >= 500:
            raise ServerFailure(message)
        raise Refused(message, status)


def connect(config: PipelineConfig) -> tuple[Api, str]:
    """Return the API and the id of the pipeline's experiment, which is created if it is missing.

    Raises:
      ConfigError: the endpoint is unreachable, or a setting is wrong.
      ServerError: the server refused a request, limits the rate, or does not work at the time.
    """  # noqa: DOC501
    api, name = Api(config), cluster_name(config)
    with readable_errors(config):
        health = api("GET", "healthz")
        if health.get("apiServerReady") is False:
            raise ServerFailure("503 the UI responds, but its API server is not ready")
        # A single-user server refuses requests with a namespace.
        users = {"namespace": config.kubeflow.namespace} if health.get("multi_user") else {}
        by_name = {"operation": _EQUALS, "key": "display_name", "stringValue": name}
        query = {"filter": json.dumps({"predicates": [by_name]}), **users}
        found = api("GET", "experiments", query=query).get("experiments")
        if not found:
            try:
                found = [api("POST", "experiments", {"display_name": name, **users})]
            except Refused as error:
                if error.status != _CONFLICT:
                    raise
                # Another submission has created it in the meantime.
                found = api("GET", "experiments", query=query).get("experiments") or [{}]
        return api, required_id(found[0], "experiment_id")


def submit_once(
    config: PipelineConfig, api: Api, path: str, body: Mapping[str, Any], page: str, field: str
) -> str:
    """Create a run or a recurring run, without a retry after a lost response; return its id.

    Args:
      config: the settings of the pipeline.
      api: the API.
      path: the path of the URL.
      body: what is created. It has a `display_name`.
      page: the URL of the page that shows whether it exists.
      field: the field of the answer with the id.

    Raises:
      ConfigError: the endpoint is unreachable, or a setting is wrong.
      ServerError: the server refused it, limits the rate, or did not respond.
      Interrupted: Ctrl-C before the response.
    """  # noqa: DOC501
    with readable_errors(config):
        try:
            return required_id(api("POST", path, body), field)
        except TooManyRequests:
            raise
        except (NoResponse, KeyboardInterrupt) as error:
            raise possibly_submitted(error, body["display_name"], page) from None


def required_id(answer: Mapping[str, Any], field: str) -> str:
    """Return an id in an answer, which each answer of Kubeflow Pipelines contains.

    Args:
      answer: an object in the answer.
      field: the name of the field.

    Raises:
      Refused: there is no such field, because another server has answered.
    """
    if not answer.get(field):
        raise Refused(f"the answer has no field {field}", 404)
    return str(answer[field])


def _token() -> str | None:
    """Return the token in the file $KF_PIPELINES_SA_TOKEN_PATH, else that of the pod, else None.

    Raises:
      ConfigError: the variable is set and there is no such file, or the file cannot be read, or is
        not one line of ASCII characters. The message does not contain the content of the file.
    """
    named = os.environ.get(TOKEN_VARIABLE)
    file = Path(_TOKEN_OF_POD if named is None else named)
    try:
        token = file.read_text(encoding="ascii").strip() if file.is_file() else None
    except OSError as error:
        raise ConfigError(
            f"{TOKEN_VARIABLE}: {file} cannot be read: {error.strerror}; set the path of a file "
            "with a token"
        ) from None
    except UnicodeError:
        token = ""
    if token is None and named is not None:
        raise ConfigError(
            f"{TOKEN_VARIABLE}: no file {named!r}; set the path of a file with a token"
        )
    # The HTTP client would print the token in its message about a header that is not valid.
    if token is not None and not (token and token.isprintable()):
        raise ConfigError(
            f"{TOKEN_VARIABLE}: {file} is not one line of printable ASCII characters; set the path "
            "of a file that contains a token and nothing else"
        )
    return token


def _reason(error: requests.RequestException) -> str:
    """Return the message of the urllib3 exception that caused an exception of requests."""
    cause: Any = error.args[0] if error.args else error
    # The message of urllib3 starts with the repr of the connection.
    return re.sub(r"^(<.*?>|\w+\(.*?\)): ", "", str(getattr(cause, "reason", None) or cause))


def _tls_problem(reason: str) -> str:
    """Return what is wrong with the TLS of a server, and the remedy; empty if a retry may help.

    Args:
      reason: the message of OpenSSL.
    """
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return (
            f"has a certificate that cannot be verified ({reason}); set a host name for which a "
            "public authority has issued the certificate, or run "
            f"`{PORT_FORWARD}` and set http://127.0.0.1:8080"
        )
    if re.search("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE", reason):
        return f"does not support TLS ({reason}); set a URL that begins with http://"
    return ""


@contextlib.contextmanager
def readable_errors(
    config: PipelineConfig, at_limit: str = "nothing was submitted"
) -> Iterator[None]:
    """Convert the errors of the API to errors that name the setting to check.

    Args:
      config: the settings of the pipeline.
      at_limit: the consequence for the message about a limit of the rate of requests.

    Raises:
      ConfigError: the endpoint is unreachable, or a setting is wrong.
      ServerError: the API refused the request, limits the rate, or does not work at the time.
    """
    at = f"kubeflow.endpoint: {config.kubeflow.endpoint}"
    file = os.environ.get(TOKEN_VARIABLE)
    try:
        yield
    except TooManyRequests as error:
        raise ServerError(
            f"{at} limits the rate of requests ({error}); {at_limit}, retry later"
        ) from None
    except ServerFailure as error:
        raise ServerError(
            f"{at} responds with a failure of the server ({error}); retry later"
        ) from None
    except NoResponse as error:
        raise ConfigError(
            f"{at} is unreachable ({error}); from outside the cluster run `{PORT_FORWARD}`"
        ) from None
    except Refused as error:
        problems = {
            401: f"{TOKEN_VARIABLE}: {config.kubeflow.endpoint} refuses the token in {file} "
            f"({error}); create a new one, see docs/how-to/kubeflow.md"
            if file
            else f"{at} requires authentication ({error}); set {TOKEN_VARIABLE} to a file with a "
            "token, see docs/how-to/kubeflow.md",
            403: f"kubeflow.namespace: no permission in {config.kubeflow.namespace!r} ({error})",
            404: f"{at} is not the Kubeflow Pipelines API, or requires a login ({error}); on a "
            "Kubeflow platform it ends in /pipeline",
        }
        if error.status in problems:
            raise ConfigError(problems[error.status]) from None
        raise ServerError(f"Kubeflow Pipelines refused the request: {error}") from None
