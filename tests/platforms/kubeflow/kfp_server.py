"""Test doubles of two APIs on 127.0.0.1, with the requests of submissions and schedules."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

LOGIN_PAGE = "<!doctype html><html><body>Log in to Your Account</body></html>"


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Server:
    """A server whose responses are those of `answer`, unless `fail` replaces them.

    Attributes:
      url: the URL of the server.
      requests: all received requests.
      states: the states of a run, one for each request of the state; the last one is repeated.
    """

    def __init__(self, states: list[dict[str, Any]]):
        self.url = ""
        self.requests: list[Request] = []
        self.states = states
        self._failures: list[tuple[str, str, int, str]] = []

    def fail(self, method: str, part: str, status: int, body: Any = "", *, times: int = 1) -> None:
        """Respond with an error if the path contains `part`.

        Status 0 executes the request and closes the connection without a response.
        """
        text = body if isinstance(body, str) else json.dumps(body)
        self._failures += [(method, part, status, text)] * times

    def find_requests(self, method: str, part: str = "") -> list[Request]:
        return [r for r in self.requests if r.method == method and part in r.path]

    def handle(self, request: Request) -> tuple[int, str] | None:
        self.requests.append(request)
        for failure in self._failures:
            method, part, status, text = failure
            if request.method == method and part in request.path:
                self._failures.remove(failure)
                if not status:
                    self.answer(request)
                    return None
                return status, text
        status, answer = self.answer(request)
        return status, answer if isinstance(answer, str) else json.dumps(answer)

    def answer(self, request: Request) -> tuple[int, Any]:
        raise NotImplementedError

    def next_state(self) -> dict[str, Any]:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


class KfpServer(Server):
    """Scripted responses of Kubeflow Pipelines to a submission.

    Attributes:
      multi_user: whether the server has several users.
    """

    multi_user = False

    def answer(self, request: Request) -> tuple[int, Any]:
        path = request.path.removeprefix("/apis/v2beta1/")
        if path == "healthz":
            return 200, {"multi_user": self.multi_user}
        if path == "experiments":
            return 200, {} if request.method == "GET" else {"experiment_id": "e-1"}
        state = {} if request.method == "POST" else self.next_state()
        return 200, {"run_id": "r-1", "experiment_id": "e-1", **state}


class VertexServer(Server):
    """Vertex AI's PipelineService.

    Attributes:
      jobs: id -> submitted job.
      schedules: resource name -> schedule.
    """

    def __init__(self, states: list[dict[str, Any]]):
        super().__init__(states)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.schedules: dict[str, dict[str, Any]] = {}

    def answer(self, request: Request) -> tuple[int, Any]:
        place, _, schedule = request.path.partition("/schedules")
        if place != request.path:
            return self._schedule(request, place.removeprefix("/v1/"), schedule)
        parent, _, job = request.path.partition("/pipelineJobs")
        if parent != "/v1/projects/my-project/locations/us-central1":
            return 404, {"error": {"code": 404, "message": "not found", "status": "NOT_FOUND"}}
        if request.method == "POST":
            name = request.query["pipelineJobId"]
            if name in self.jobs:
                message = f"Requested entity already exists: {name}"
                return 409, {"error": {"code": 409, "message": message, "status": "ALREADY_EXISTS"}}
            self.jobs[name] = request.body
            return 200, {"name": f"{parent}/pipelineJobs/{name}", **request.body}
        return 200, {**self.jobs[job.removeprefix("/")], **self.next_state()}

    def _schedule(self, request: Request, parent: str, schedule: str) -> tuple[int, Any]:
        if request.method == "POST":
            name = f"{parent}/schedules/{len(self.schedules)}"
            self.schedules[name] = {"name": name, "state": "ACTIVE", **request.body}
            return 200, self.schedules[name]
        if request.method == "DELETE":
            del self.schedules[f"{parent}/schedules{schedule}"]
            return 200, {"done": True}
        # Pages of one.
        start, found = int(request.query.get("pageToken", "0")), list(self.schedules.values())
        page = {"schedules": found[start : start + 1]}
        more = start + 1 < len(found)
        return 200, {**page, "nextPageToken": str(start + 1)} if more else page


@contextlib.contextmanager
def serving(server: Any) -> Iterator[Any]:
    """Run `server` in this context."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            answer = server.handle(Request(self.command, url.path, query, dict(self.headers), body))
            if answer is None:
                self.close_connection = True
                return
            status, text = answer
            data = text.encode()
            self.send_response(status)
            kind = "application/json" if text.startswith("{") else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        yield server
        http.shutdown()
        thread.join()
