"""The HTTP side of the Kubernetes API server for tests: routes, answers, and logs that grow."""

import json
import re
import socket
import sys
import threading
import time
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

APIS = re.compile(r"/apis/([^/]+/v1\w*)$")
JOBS = re.compile(r"/apis/([^/]+)/v1\w*/namespaces/([^/]+)/(\w+)(?:/([^/]+))?$")
RUNTIMES = re.compile(r"/apis/trainer\.kubeflow\.org/v1alpha1/clustertrainingruntimes/([^/]+)$")
EVENTS = re.compile(r"/api/v1/namespaces/([^/]+)/events$")
PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods(?:/([^/]+)/log)?$")
_KIND_AND_NAME = {"involvedObject.kind", "involvedObject.name"}
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "AlreadyExists",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def status(code, message, **details):
    """The Status object of an error."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS[code],
        "details": details,
        "code": code,
    }


def forbidden(verb, resource, group=""):
    user = "system:serviceaccount:kubeflow:default-editor"
    return 403, status(
        403,
        f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group '
        f'"{group}" in the namespace "kubeflow"',
        kind=resource,
    )


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # The client may have ended, or its request may have timed out.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Log:
    """The lines of a pod's log, each with its time."""

    def __init__(self):
        self._changed = threading.Condition()
        self._lines = []
        self._ended = False
        self._breaks = 0

    def write(self, text, seconds_ago=0.0):
        moment = time.time() - seconds_ago
        with self._changed:
            self._lines.append((moment, text))
            self._changed.notify_all()

    def break_off(self):
        """Break the connection of a reader at this position, once."""
        with self._changed:
            self._breaks += 1
        self.write(None)

    def breaks_off(self):
        with self._changed:
            self._breaks -= 1
            return self._breaks >= 0

    def end(self):
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def read(self, since, follow):
        """Yield pairs of a time and a text until the end of the log."""
        number = 0
        while True:
            with self._changed:
                while follow and number == len(self._lines) and not self._ended:
                    self._changed.wait()
                fresh, number = self._lines[number:], len(self._lines)
                ended = self._ended
            yield from (pair for pair in fresh if pair[0] >= since)
            if ended or not follow:
                return


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def _serve(self):
        url = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        with self.kubernetes.lock:
            self.kubernetes.requests.append(f"{self.command} {self.path}")
        fault = self.kubernetes.fault(self.command, self.path)
        self.loses = fault == "lose"
        if fault == "drop":
            self._hang_up()
        elif fault == "hang":
            time.sleep(5)
            self.close_connection = True
        elif fault is not None and not self.loses:
            self._answer(*fault)
        elif self.headers.get("Authorization") != "Bearer secret":
            self._answer(401, status(401, "Unauthorized"))
        else:
            self._route(url.path, parse_qs(url.query), body)

    do_GET = do_POST = do_DELETE = _serve

    def _route(self, path, query, body):
        jobs, pods = JOBS.match(path), PODS.match(path)
        apis, runtimes = APIS.match(path), RUNTIMES.match(path)
        served = {kind.plural: kind for kind in self.kubernetes.kinds.values()}
        if apis and apis[1] in {f"{kind.group}/{kind.version}" for kind in served.values()}:
            self._list_resources(apis[1])
        elif runtimes:
            self._runtime(runtimes[1])
        elif jobs and jobs[3] in served and self.command == "POST" and not jobs[4]:
            self._create(served[jobs[3]], body)
        elif jobs and jobs[3] in served and jobs[4]:
            self._one_job(served[jobs[3]], jobs[4], body)
        elif pods and pods[2]:
            self._log(pods[2], query)
        elif pods:
            self._list_pods(query)
        elif EVENTS.match(path):
            self._list_events(query)
        else:
            # The response of a real server to a request for an unknown resource.
            self._answer(404, "404 page not found\n")

    def _list_resources(self, group_version):
        resources = [
            {"name": kind.plural, "kind": kind.title}
            for kind in self.kubernetes.kinds.values()
            if group_version == f"{kind.group}/{kind.version}"
        ]
        content = {"kind": "APIResourceList", "groupVersion": group_version}
        self._answer(200, {**content, "resources": resources})

    def _runtime(self, name):
        with self.kubernetes.lock:
            runtime = self.kubernetes.runtimes.get(name)
        if runtime is None:
            message = f'clustertrainingruntimes.trainer.kubeflow.org "{name}" not found'
            self._answer(404, status(404, message, name=name, kind="clustertrainingruntimes"))
        else:
            self._answer(200, runtime)

    def _create(self, kind, job):
        name = job["metadata"]["name"]
        with self.kubernetes.lock:
            if name in self.kubernetes.jobs:
                message = f'{kind.plural}.{kind.group} "{name}" already exists'
                self._answer(409, status(409, message, name=name, group=kind.group))
                return
            why = self.kubernetes.refused_by_webhook(job)
            if why:
                self._answer(403, status(403, f"admission webhook {why}"))
                return
            job["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
            self.kubernetes.jobs[name] = job
            text = json.dumps(job)
            self.kubernetes.on_create(job)
        self._answer(201, text)

    def _one_job(self, kind, name, options):
        with self.kubernetes.lock:
            job = self.kubernetes.jobs.get(name)
            if job is None or job["kind"] != kind.title:
                message = f'{kind.plural}.{kind.group} "{name}" not found'
                details = {"name": name, "group": kind.group, "kind": kind.plural}
                self._answer(404, status(404, message, **details))
                return
            if self.command == "DELETE":
                assert options["propagationPolicy"] == "Foreground"
                if self.kubernetes.on_delete is None:
                    del self.kubernetes.jobs[name]
                elif "deletionTimestamp" not in job["metadata"]:
                    job["metadata"] |= {
                        "deletionTimestamp": now(),
                        "finalizers": ["foregroundDeletion"],
                    }
                    self.kubernetes.on_delete(job)
            text = json.dumps(job)
        self._answer(200, text)

    def _list_pods(self, query):
        label, name = query["labelSelector"][0].split("=")
        with self.kubernetes.lock:
            items = [
                pod
                for pod in self.kubernetes.pods.values()
                if pod["metadata"]["labels"].get(label) == name
            ]
            text = json.dumps(
                {"kind": "PodList", "apiVersion": "v1", "metadata": {}} | {"items": items}
            )
        self._answer(200, text)

    def _list_events(self, query):
        fields = dict(each.split("=") for each in query["fieldSelector"][0].split(","))
        assert set(fields) - {"type"} in ({"involvedObject.uid"}, _KIND_AND_NAME)
        wanted = {key.rpartition(".")[2]: value for key, value in fields.items()}
        with self.kubernetes.lock:
            items = [
                event
                for event in self.kubernetes.events
                if wanted.items() <= {**event["involvedObject"], "type": event["type"]}.items()
            ]
            text = json.dumps(
                {"kind": "EventList", "apiVersion": "v1", "metadata": {}} | {"items": items}
            )
        self._answer(200, text)

    def _log(self, name, query):
        assert query["timestamps"] == ["True"]
        with self.kubernetes.lock:
            pod = self.kubernetes.pods.get(name)
            if pod is None:
                self._answer(404, status(404, f'pods "{name}" not found', name=name, kind="pods"))
                return
            [container] = query["container"]
            assert container == ("node" if "-node-" in name else "tensorflow")
            if pod["status"]["phase"] == "Pending":
                message = f'container "{container}" in pod "{name}" is waiting to start'
                self._answer(400, status(400, message))
                return
            log = self.kubernetes.log_of(pod)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        since = time.time() - int(query.get("sinceSeconds", ["1000000"])[0])
        for moment, text in log.read(since, "follow" in query):
            if text is None:
                if not log.breaks_off():
                    continue
                self._hang_up()
                return
            seconds = datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
            line = f"{seconds}.{int(moment % 1 * 1e9):09d}Z {text}\n".encode()
            self._chunk(line)
        self._chunk(b"")

    def _chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _hang_up(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _answer(self, code, content, headers=None):
        if self.loses:
            self._hang_up()
            return
        is_text = isinstance(content, str)
        body = (content if is_text else json.dumps(content)).encode()
        self.send_response(code)
        kind = "text/plain" if is_text and code >= 400 else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
