"""Scripted responses of Kubeflow Pipelines to a submission, in place of a server."""

import json
from http import HTTPStatus
from typing import Any, NamedTuple

import requests

LOGIN_PAGE = "<!doctype html><html><body>Log in to Your Account</body></html>"


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    query: dict[str, str]


class KfpServer:
    """The responses.

    Attributes:
      url: the URL of the server.
      requests: all received requests.
      multi_user: whether the server has several users.
      states: the states of a run, one for each request of the state; the last one is repeated.
      experiments: the experiments with the name of the pipeline.
      recurring: the recurring runs that exist.
      runs: the runs that a list of all runs contains, the newest one first.
    """

    url = "http://kubeflow.example"

    def __init__(self):
        self.requests = []
        self.multi_user = False
        self.states = [{"state": "SUCCEEDED"}]
        self.experiments = []
        self.recurring = []
        self.runs = []
        self._failures = []

    def fail(self, method, part, status, body="", *, times=1, headers=()):
        """Respond with an error if the path contains `part`; status 0 closes the connection."""
        text = body if isinstance(body, str) else json.dumps(body)
        self._failures += [(method, part, status, text, headers)] * times

    def find_requests(self, method, part=""):
        return [r for r in self.requests if r.method == method and part in r.path]

    def request(self, method, url, json, headers, params):
        """Return the response to the arguments of `requests.Session.request`."""
        request = Request(method, url.removeprefix(self.url), headers, json, params or {})
        self.requests.append(request)
        status, text, more = self._answer(request)
        if not status:
            raise requests.ConnectionError("connection closed")
        response = requests.Response()
        response.status_code, response.reason = status, HTTPStatus(status).phrase
        response._content = text.encode()
        response.headers.update(more)
        return response

    def _answer(self, request):
        for failure in self._failures:
            method, part, status, text, more = failure
            if request.method == method and part in request.path:
                self._failures.remove(failure)
                return status, text, more
        path, answer = request.path.removeprefix("/apis/v2beta1/"), {"run_id": "r-1"}
        if path == "healthz":
            answer = {"multi_user": self.multi_user}
        elif path == "experiments":
            is_list = request.method == "GET"
            answer = {"experiments": self.experiments} if is_list else {"experiment_id": "e-1"}
        elif path.startswith("recurringruns"):
            answer = self._recurring(request, path)
        elif request.method == "GET" and path == "runs":
            answer = {"runs": self.runs} if self.runs else {}
        elif request.method == "GET":
            answer |= self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return 200, json.dumps(answer), {}

    def _recurring(self, request, path):
        """Return the answer of the part of the API for recurring runs."""
        if request.method == "DELETE":
            self.recurring = [r for r in self.recurring if not path.endswith(r["recurring_run_id"])]
            return {}
        if request.method == "GET":
            # A page has one recurring run.
            first = int(request.query.get("page_token", 0))
            page = self.recurring[first : first + 1]
            more = {"next_page_token": str(first + 1)} if first + 1 < len(self.recurring) else {}
            return {"recurringRuns": page, **more} if page else {}
        if path.endswith(":disable"):
            [found] = [each for each in self.recurring if f"/{each['recurring_run_id']}:" in path]
            found["mode"] = "DISABLE"
            return {}
        created = {**request.body, "recurring_run_id": f"s-{len(self.recurring) + 1}"}
        self.recurring.append(created)
        return created


def serving(monkeypatch):
    """Replace the requests to the server's URL; return the server."""
    server, real = KfpServer(), requests.Session.request

    def request(session, method, url, **options):
        if url.startswith(server.url):
            sent = options["json"], options["headers"], options.get("params")
            return server.request(method, url, *sent)
        return real(session, method, url, **options)

    monkeypatch.setattr(requests.Session, "request", request)
    return server
