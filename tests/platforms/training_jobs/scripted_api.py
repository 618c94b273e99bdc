"""Scripted responses of the Kubernetes API, in place of a server."""

import json
import re
from types import SimpleNamespace

from kubernetes.client.exceptions import ApiException

REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "AlreadyExists"}


def status(code, message):
    """Return an error with its Status object."""
    return code, {"kind": "Status", "message": message, "reason": REASONS.get(code, "Any")}


class _LostBody:
    """A response whose connection is lost while its body is read."""

    def __init__(self, error):
        self._error = error

    @property
    def data(self):
        raise self._error


class ScriptedApi:
    """Answers in place of the HTTP client of the package `kubernetes`."""

    def __init__(self):
        self.requests = []
        self.headers = {}
        self._answers = []

    def answer(self, method, path, *answers):
        """Give answers to the next requests of a kind, and the last one to all further ones.

        An answer is an exception, or a code and an object, a text or the exception that ends the
        transfer of the body.
        """
        self._answers.insert(0, (f"{method} .*{path}", list(answers)))

    def request(self, method, url, query_params=None, **unused):
        request = f"{method} {url} {query_params or ''}"
        self.requests.append(request)
        found = (answers for pattern, answers in self._answers if re.search(pattern, request))
        answers = next(found, [status(404, "none")])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        code, content = answer
        if isinstance(content, Exception):
            return _LostBody(content)
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        if code >= 400:
            response = SimpleNamespace(
                status=code, reason="", data=data, getheaders=lambda: self.headers
            )
            raise ApiException(http_resp=response)
        return SimpleNamespace(data=data)
