"""MLflow's own server, in an environment of its own."""

import contextlib
import json
import os
import random
import subprocess
import urllib.request

from tests.checkout import CHECKOUT
from tests.waiting import wait

NAME = "amazon_reviews"


def values(entries):
    """Return key -> value of a list in the form of MLflow's REST API."""
    return {entry["key"]: entry["value"] for entry in entries}


class Server:
    """`mlflow server`, and its REST API."""

    def __init__(self, folder):
        # The server starts for up to a minute. No other program gets such a port from the system.
        port = random.randrange(20_000, 30_000)
        self.uri = f"http://127.0.0.1:{port}"
        command = [
            str(CHECKOUT / ".cache/mlflow/bin/mlflow"),
            *("server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
            *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db"),
            *("--artifacts-destination", f"{folder}/artifacts"),
        ]
        environ = {
            **os.environ,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        self._log = folder / "server.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=environ, stdout=log, stderr=log, start_new_session=True
            )
        wait(self._is_ready, 300)

    def _is_ready(self):
        assert self.process.poll() is None, self._log.read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.uri}/health"):
            return True
        return False

    def call(self, path, **body):
        """Return the answer to a request; without a body it is a GET."""
        data = json.dumps(body).encode() if body else None
        url = f"{self.uri}/api/2.0/mlflow/{path}"
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def runs(self, condition="", name=NAME):
        """Return the runs of a pipeline, the newest first."""
        found = self.call(f"experiments/get-by-name?experiment_name={name}")
        experiment = found["experiment"]["experiment_id"]
        order = ["attributes.start_time DESC"]
        body = {"experiment_ids": [experiment], "filter": condition, "order_by": order}
        return self.call("runs/search", **body).get("runs", [])

    def champion(self):
        """Return the name of the pushed version with the alias, and the number of versions."""
        alias = f"registered-models/alias?name={NAME}&alias=champion"
        tags = values(self.call(alias)["model_version"]["tags"])
        found = self.call(f"model-versions/search?filter=name%3D%27{NAME}%27")
        return tags["pushed_to"].rpartition("/")[2], len(found["model_versions"])

    def artifacts(self, run, path=""):
        listed = self.call(f"artifacts/list?run_id={run['info']['run_id']}&path={path}")
        return {file["path"] for file in listed.get("files", [])}
