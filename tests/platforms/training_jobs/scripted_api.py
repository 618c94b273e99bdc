"""A Kubernetes API server with scripted answers for the errors that a real one rarely gives."""

import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "AlreadyExists"}


def status(code, message, **details):
    """Return the Status object of an error."""
    return {
        "kind": "Status",
        "message": message,
        "reason": REASONS.get(code, "Any"),
        "details": details,
        "code": code,
    }


def forbidden(verb, resource):
    user = "system:serviceaccount:ml:default-editor"
    return 403, status(403, f'User "{user}" cannot {verb} resource "{resource}"', kind=resource)


class ScriptedApi:
    """A server on 127.0.0.1, whose address is in `kube_config(folder)`.

    Attributes:
      requests: the received requests, as `METHOD path`.
    """

    def __init__(self):
        self.requests = []
        self._answers = []
        handler = type("Handler", (_Handler,), {"api": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.port = self._http.server_port
        # A short interval, because `shutdown` waits for it.
        threading.Thread(target=self._http.serve_forever, args=[0.05], daemon=True).start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()

    def answer(self, method, path, *answers):
        """Give answers to the next requests of a kind, and the last one to all further ones.

        An answer is (code, object or text), optionally with headers as the third element; or
        `drop`: the connection is closed without a response; `hang`: there is no response for 5 s.
        """
        self._answers.insert(0, (f"{method} .*{path}", list(answers)))

    def answer_to(self, request):
        self.requests.append(request)
        for pattern, answers in self._answers:
            if re.search(pattern, request):
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return 404, status(404, "not found")

    def kube_config(self, folder):
        """Write a kube config and return its path."""
        file = folder / "kube-config.yaml"
        config = {
            "current-context": "test",
            "clusters": [
                {"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.port}"}},
            ],
            "users": [{"name": "test", "user": {"token": "secret"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        file.write_text(json.dumps(config))
        return str(file)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def _serve(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.api.answer_to(f"{self.command} {self.path}")
        if answer == "hang":
            time.sleep(5)
        if answer in ("hang", "drop"):
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        code, content, *headers = answer
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers[0] if headers else {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _serve
