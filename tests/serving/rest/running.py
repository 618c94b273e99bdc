"""A REST server in a thread of the tests or in a process of its own, and requests to it."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from serving.rest.limits import Limits
from serving.rest.listener import open_socket
from serving.rest.metrics import Metrics
from serving.rest.server import uvicorn_config
from serving.rest.settings import Server
from serving.rest.versions import ServedVersions
from tests.waiting import wait

MODEL = "/v1/models/amazon_reviews"
PREDICT = f"{MODEL}:predict"
COMMAND = str(Path(sys.executable).with_name("amazon-reviews"))


@dataclass
class Answer:
    status: int
    headers: dict
    content: bytes

    @property
    def json(self):
        return json.loads(self.content)


@dataclass
class Running:
    """A running server."""

    versions: ServedVersions
    port: int
    server: uvicorn.Server | None = None

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, document):
        body = document if isinstance(document, bytes) else json.dumps(document)
        return self.request("POST", path, body)

    def predict(self, *texts):
        return self.post(PREDICT, {"signature_name": "predict_text", "instances": list(texts)})

    def is_well(self):
        """Whether the server answers a normal request."""
        return self.predict("good").json == {"predictions": [{"label": 1, "probability": 0.9}]}

    def end(self):
        """Begin the end, as SIGTERM does."""
        self.server.should_exit = True

    def accepts(self):
        """Whether the server accepts connections."""
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


@contextlib.contextmanager
def running(folder, **limits):
    """Serve the models in `folder` while the context is open."""
    limits = Limits(**limits)
    listener = open_socket(Server(port=0))
    metrics = Metrics()
    versions = ServedVersions(str(folder), metrics)
    server = uvicorn.Server(uvicorn_config(versions, metrics, limits))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    wait(lambda: server.started)
    try:
        yield Running(versions, listener.getsockname()[1], server)
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@contextlib.contextmanager
def serving(root, **settings):
    """(process, server, words) of `amazon-reviews serve`; `words` are the lines it has printed.

    `settings` are those of the section `server`.
    """
    values = {"paths.root": root, **{f"server.{key}": value for key, value in settings.items()}}
    process = subprocess.Popen(
        [COMMAND, "serve", "--port", "0"],
        env={**os.environ, "PIPELINE_SET": ",".join(f"{k}={v}" for k, v in values.items())},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = [process.stdout.readline(), process.stdout.readline()]
    port = re.search(r"http://127\.0\.0\.1:(\d+)/", lines[1])
    assert port, process.communicate(timeout=60)
    try:
        yield process, Running(None, int(port[1])), lines
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)
