"""Runs in MLflow, and the way back to an earlier model, against MLflow's own server."""

import contextlib
import json
import os
import socket
import subprocess
import threading
import urllib.request

import pytest

from tests.checkout import CHECKOUT
from tests.e2e.conftest import LITTLE
from tests.e2e.harness import COMMAND, Workspace
from tests.waiting import wait

pytestmark = [
    pytest.mark.slow,
    pytest.mark.both_stacks,
    pytest.mark.xdist_group("mlflow"),
    pytest.mark.timeout(1800),
]
SECRET = "open-sesame-17"
NAME = "amazon_reviews"


class Server:
    """`mlflow server`, and its REST API."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
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

    def runs(self, condition=""):
        """Return the runs of the pipeline, the newest first."""
        found = self.call(f"experiments/get-by-name?experiment_name={NAME}")
        experiment = found["experiment"]["experiment_id"]
        order = ["attributes.start_time DESC"]
        body = {"experiment_ids": [experiment], "filter": condition, "order_by": order}
        return self.call("runs/search", **body).get("runs", [])

    def champion(self):
        """Return the folder that the version with the alias was pushed to."""
        alias = f"registered-models/alias?name={NAME}&alias=champion"
        return values(self.call(alias)["model_version"]["tags"])["pushed_to"]

    def artifacts(self, run, path=""):
        listed = self.call(f"artifacts/list?run_id={run['info']['run_id']}&path={path}")
        return {file["path"] for file in listed.get("files", [])}


def values(entries):
    return {entry["key"]: entry["value"] for entry in entries}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    subprocess.run(["make", "-s", "-C", str(CHECKOUT), "mlflow-server"], check=True)
    server = Server(tmp_path_factory.mktemp("mlflow"))
    yield server
    server.process.terminate()
    server.process.wait(60)


@pytest.fixture(scope="module")
def tracked(server, tmp_path_factory):
    """A workspace whose first run pushed a model."""
    settings = {**LITTLE, "tracking": {"mlflow": server.uri}}
    environ = {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": SECRET}
    workspace = Workspace(tmp_path_factory.mktemp("tracked"), settings, environ)
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    return workspace


def test_a_run_and_its_model_are_in_mlflow(server, tracked):
    [run] = server.runs()
    [pushed] = tracked.pushed()
    assert run["info"]["status"] == "FINISHED"
    assert values(run["data"]["params"])["training.model"] == "ngram_linear"
    tags = values(run["data"]["tags"])
    assert (tags["result"], tags["platform"]) == ("pushed", "local")
    assert tags["version.tensorflow"].startswith("2.")
    metrics = values(run["data"]["metrics"])
    assert 0.5 < metrics["accuracy"] < 1
    run_id = run["info"]["run_id"]
    curve = server.call(f"metrics/get-history?run_id={run_id}&metric_key=train_loss")["metrics"]
    assert len(curve) > 3
    assert curve[-1]["step"] == max(point["step"] for point in curve)
    datasets = [each["dataset"] for each in run["inputs"]["dataset_inputs"]]
    assert {each["name"] for each in datasets} == {f"{NAME}/{s}" for s in ("train", "eval", "test")}
    assert len({each["digest"] for each in datasets}) == 3
    assert server.artifacts(run) >= {"report.html", "evaluation", "model_run", "model"}
    assert "model/MLmodel" in server.artifacts(run, "model")
    assert server.champion() == str(pushed)


def test_the_registered_model_predicts(server, tracked):
    from mlflow import pyfunc, set_tracking_uri

    set_tracking_uri(server.uri)
    model = pyfunc.load_model(f"models:/{NAME}@champion")
    assert [column.name for column in model.metadata.signature.inputs.inputs] == ["text"]
    answers = model.predict(model.input_example)
    assert answers["label"].tolist() == [1, 0]


def test_a_run_that_is_not_blessed_and_one_that_fails_say_so(server, tracked, tmp_path):
    assert tracked.run("evaluation.min_accuracy=0.999").returncode == 3
    newest = server.runs()[0]
    tags = values(newest["data"]["tags"])
    assert tags["result"] == "not blessed"
    assert "0.999" in tags["mlflow.note.content"]

    (tmp_path / "reviews.csv").write_text("label,text\n" + "7,It is a thing\n" * 50)
    assert tracked.run(f"data.input_base={tmp_path}").returncode == 2
    newest = server.runs()[0]
    assert newest["info"]["status"] == "FAILED"
    assert "reviews.csv" in values(newest["data"]["tags"])["mlflow.note.content"]


def test_a_server_that_does_not_respond_costs_one_warning(server, tracked):
    known = len(server.runs())
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # It accepts connections and answers none.
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        away = f"evaluation.min_accuracy=0.01 tracking.mlflow={uri}"
        assert tracked.run(away).returncode == 0
    [log] = sorted((tracked.root / "logs").glob("*.log"))[-1:]
    [warning] = [line for line in log.read_text().splitlines() if "was not sent" in line]
    assert uri in warning
    sent = tracked.command("runs", "--send")
    assert sent.returncode == 0, sent.stderr
    assert sent.stdout.count("sent ") == 1
    assert len(server.runs()) == known + 1
    assert tracked.command("runs", "--send").stdout == ""


def test_the_password_is_nowhere(server, tracked):
    files = [file for file in tracked.folder.rglob("*") if file.is_file()]
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
    refused = tracked.run(f"tracking.mlflow=http://me:{SECRET}@127.0.0.1:1")
    assert refused.returncode == 2
    assert SECRET not in refused.stdout + refused.stderr
    assert "MLFLOW_TRACKING_PASSWORD" in refused.stderr


def test_the_trials_of_the_tuner_are_child_runs(server, tracked):
    done = tracked.run("training.tuner_trials=2 training.epochs=1 push.destination=none")
    assert done.returncode == 0, done.stdout
    parent = server.runs("tags.result = 'blessed'")[0]["info"]["run_id"]
    children = server.runs(f"tags.mlflow.parentRunId = '{parent}'")
    assert len(children) == 2
    assert all("val_loss" in values(each["data"]["metrics"]) for each in children)


def test_rollback_and_forward_again_without_a_failed_request(server, tracked):
    bad = "training.seed=7 training.epochs=1"
    assert tracked.run(bad).returncode == 0
    first, second = tracked.pushed()
    assert server.champion() == str(second)
    served = subprocess.Popen(
        [COMMAND, "serve", "--port", "0"],
        env=tracked.env(),
        cwd=tracked.folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    served.stdout.readline()
    url = served.stdout.readline().split()[3]
    ended = threading.Event()
    failed, answers = [], set()

    def ask():
        body = json.dumps({"instances": ["Great phone, I use it every day."]}).encode()
        while not ended.is_set():
            try:
                with urllib.request.urlopen(f"{url}v1/models/{NAME}:predict", body) as answer:
                    answers.add(answer.read())
            except OSError as error:
                failed.append(error)

    load = threading.Thread(target=ask)
    load.start()
    try:
        wait(lambda: len(answers) == 1)
        back = tracked.command("rollback")
        assert back.returncode == 0, back.stderr
        assert f"version {first.name} again" in back.stdout
        wait(lambda: len(answers) == 2)
        assert server.champion() == str(first)
        table = tracked.command("models").stdout
        assert [line.split()[-1] for line in table.splitlines()[1:]] == ["back", "served"]

        again = tracked.run(bad)
        assert again.returncode == 2
        assert f"version {second.name}" in again.stdout
        assert "rolled back" in again.stdout

        forward = tracked.command("rollback", second.name)
        assert forward.returncode == 0, forward.stderr
        assert server.champion() == str(second)
        unknown = tracked.command("rollback", "17")
        assert (unknown.returncode, "no version 17" in unknown.stderr) == (2, True)
    finally:
        ended.set()
        load.join()
        served.terminate()
        served.wait(60)
    assert failed == []
