"""A Kubernetes API with scripted answers for the errors that a real one rarely gives."""

import json
import re
from types import SimpleNamespace

from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject

REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "AlreadyExists"}


def status(code, message, **details):
    """Return the Status object of an error."""
    reason = REASONS.get(code, "Any")
    return {"kind": "Status", "message": message, "reason": reason, "details": details}


def forbidden(verb, resource):
    user = "system:serviceaccount:ml:default-editor"
    return 403, status(403, f'User "{user}" cannot {verb} resource "{resource}"', kind=resource)


class ScriptedApi:
    """Answers in place of the HTTP client of the package `kubernetes`.

    Attributes:
      requests: the requests, as `METHOD URL QUERY`.
    """

    def __init__(self, monkeypatch, folder):
        self.requests = []
        self._answers = []
        monkeypatch.setattr(RESTClientObject, "request", self._request)
        file = folder / "kube-config.yaml"
        config = {
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "test", "user": {"token": "secret"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        file.write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(file))

    def answer(self, method, path, *answers):
        """Give answers to the next requests of a kind, and the last one to all further ones.

        An answer is an exception, or a code and an object or a text.
        """
        self._answers.insert(0, (f"{method} .*{path}", list(answers)))

    def _request(self, method, url, query_params=None, **unused):
        request = f"{method} {url} {query_params or ''}"
        self.requests.append(request)
        answers = next(
            (found for pattern, found in self._answers if re.search(pattern, request)), []
        )
        answer = answers.pop(0) if len(answers) > 1 else [*answers, (404, status(404, "none"))][0]
        if isinstance(answer, Exception):
            raise answer
        code, content = answer
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        if code >= 400:
            response = SimpleNamespace(status=code, reason="", data=data, getheaders=dict)
            raise ApiException(http_resp=response)
        return SimpleNamespace(data=data)
