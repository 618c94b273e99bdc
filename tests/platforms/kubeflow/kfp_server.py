"""Scripted responses of Kubeflow Pipelines to a submission, on 127.0.0.1."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

LOGIN_PAGE = "<!doctype html><html><body>Log in to Your Account</body></html>"


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class KfpServer:
    """The responses.

    Attributes:
      url: the URL of the server.
      requests: all received requests.
      multi_user: whether the server has several users.
      states: the states of a run, one for each request of the state; the last one is repeated.
    """

    def __init__(self):
        self.url = ""
        self.requests = []
        self.multi_user = False
        self.states = [{"state": "SUCCEEDED"}]
        self._failures = []

    def fail(self, method, part, status, body="", *, times=1):
        """Respond with an error if the path contains `part`; status 0 closes the connection."""
        text = body if isinstance(body, str) else json.dumps(body)
        self._failures += [(method, part, status, text)] * times

    def find_requests(self, method, part=""):
        return [r for r in self.requests if r.method == method and part in r.path]

    def handle(self, request):
        self.requests.append(request)
        for failure in self._failures:
            method, part, status, text = failure
            if request.method == method and part in request.path:
                self._failures.remove(failure)
                return status, text
        return 200, json.dumps(self.answer(request))

    def answer(self, request):
        path = request.path.removeprefix("/apis/v2beta1/")
        if path == "healthz":
            return {"multi_user": self.multi_user}
        if path == "experiments":
            return {} if request.method == "GET" else {"experiment_id": "e-1"}
        more = {} if request.method == "POST" else self.states[0]
        if more and len(self.states) > 1:
            del self.states[0]
        return {"run_id": "r-1", "experiment_id": "e-1", **more}


@contextlib.contextmanager
def serving():
    """Run a server in this context."""
    server = KfpServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = dict(self.headers)
            status, text = server.handle(
                Request(self.command, urlsplit(self.path).path, headers, body)
            )
            if not status:
                self.close_connection = True
                return
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_DELETE = do_GET

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        yield server
        http.shutdown()
        thread.join()
