"""Runs that MLflow did not receive, against MLflow's own server: lost parts, kills, two senders."""

import contextlib
import dataclasses
import http.server
import json
import os
import re
import shutil
import threading
import urllib.error
import urllib.request

import pytest
import yaml
from typer.testing import CliRunner

from tests.e2e.mlflow_server import values
from tests.waiting import in_background

pytestmark = [
    pytest.mark.slow,
    pytest.mark.both_stacks,
    pytest.mark.xdist_group("mlflow"),
    pytest.mark.timeout(900),
]
REQUESTS = ("runs/create", "log-batch", "/artifacts/", "versions/create")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch):
    # `connected` sets variables.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "0")


class Place:
    """A pipeline of its own, with runs that MLflow did not receive."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.name = f"p{abs(hash(str(folder)))}"
        self.unsent = folder / "runs" / "unsent"
        self.serving = folder / "runs" / "serving"
        self._probability = 0.6

    def add(self, run_id, *, pushes=True):
        """Add a run that was not sent; return the Run. It pushed a model of its own, or none."""
        from components.run_report.content import collect
        from components.run_report.tracking import TrackingServer, track
        from tests.components.run_report.artifacts import write_run
        from tests.serving.models import push

        written = write_run(self.folder / run_id)
        self._probability += 0.01
        model = self.folder / run_id / "model" / "Format-Serving"
        shutil.rmtree(model)
        push(model, self._probability)
        pushed = self.serving / str(100 + len(list(self.unsent.glob("*.json"))))
        shutil.copytree(model, pushed)
        pushed_to = str(pushed) if pushes else ""
        run = dataclasses.replace(written, name=self.name, id=run_id, pushed_to=pushed_to)
        track(
            TrackingServer(NOWHERE, str(self.unsent), self.name, {"platform": "local"}),
            collect(run),
        )
        assert (self.unsent / f"{run_id}.json").exists()
        return run

    def send(self, uri=""):
        """Call `runs --send`; return the exit code and the lines."""
        return self.call("runs", "--send", uri=uri)

    def call(self, *words, uri=""):
        """Call a command; return the exit code and the lines."""
        from cli.app import app

        config = self.folder / "settings.yaml"
        settings = {
            "name": self.name,
            "paths": {"root": str(self.folder / "runs")},
            "tracking": {"mlflow": uri or self.server.uri},
        }
        config.write_text(yaml.safe_dump(settings))
        done = CliRunner().invoke(app, [*words, "--config", str(config)])
        # Not the lines of MLflow's client on standard error, which the command discards.
        own = re.compile(r"(not )?sent|tracking\.mlflow|\d runs? w|MLflow:|/")
        return done.exit_code, list(filter(own.match, done.output.splitlines()))

    def champion(self):
        """Return the number of the version of the registered model that has the alias."""
        found = self.server.call(f"registered-models/alias?name={self.name}&alias=champion")
        return int(found["model_version"]["version"])

    def kept(self):
        return sorted(file.stem for file in self.unsent.glob("*.json"))

    def ids(self):
        """Return the ids of the pipeline's runs in MLflow, without their children."""
        try:
            found = self.server.runs(name=self.name)
        except urllib.error.HTTPError:  # There is no experiment.
            return []
        return sorted(values(run["data"]["tags"])["pipeline_run_id"] for run in found)

    def versions(self):
        """Return the versions of the registered model: number -> folder of the push."""
        path = f"model-versions/search?filter=name%3D%27{self.name}%27"
        found = self.server.call(path).get("model_versions", [])
        return {
            int(each["version"]): values(each["tags"])["pushed_to"].rpartition("/")[2]
            for each in found
        }


@pytest.fixture
def place(tmp_path, mlflow_server):
    return Place(tmp_path, mlflow_server)


@pytest.mark.exhaustive
def test_a_model_without_the_output_of_its_trainer_is_sent_from_the_pushed_copy(place):
    from mlflow import pyfunc, set_tracking_uri

    place.add("A")
    shutil.rmtree(place.folder / "A" / "model")
    assert place.send() == (0, [f"sent A to {place.server.uri}"])
    assert (place.ids(), place.versions(), place.kept()) == (["A"], {1: "100"}, [])
    set_tracking_uri(place.server.uri)
    model = pyfunc.load_model(f"models:/{place.name}@champion")
    assert model.predict(model.input_example)["label"].tolist() == [0, 0]
    [run] = place.server.runs(name=place.name)
    assert "evaluation" in place.server.artifacts(run)


def test_a_damaged_run_is_kept_and_named_and_the_later_ones_are_sent(place):
    from tests.serving.models import push

    runs = {run_id: place.add(run_id, pushes=run_id in "CE") for run_id in "ABCDE"}
    (place.unsent / "A.json").write_text('{"run": ')
    shutil.rmtree(runs["B"].uris["evaluation"])
    # Another model has the place of the pushed one.
    shutil.rmtree(runs["C"].uris["model"])
    shutil.rmtree(runs["C"].pushed_to)
    push(runs["C"].pushed_to, 0.9)
    (place.folder / "D" / "model_run" / "training.json").unlink()
    code, lines = place.send()
    assert code == 1
    by_run = dict(zip("ABCDE", lines, strict=False))
    assert f"not sent: {place.unsent}/A.json: is no run that was kept for MLflow" in by_run["A"]
    assert f"{place.unsent}/B.json: a part of the run was lost: evaluation: " in by_run["B"]
    assert "the pushed model is lost: " in by_run["C"]
    assert "is another model" in by_run["C"]
    assert "D.json: a part of the run was lost: " in by_run["D"]
    assert by_run["E"] == f"sent E to {place.server.uri}"
    assert lines[-1] == "4 runs were not sent, see above"
    assert (place.ids(), list(place.versions().values())) == (["E"], ["104"])
    # The same once more: nothing is sent twice.
    assert place.send()[0] == 1
    assert (place.ids(), place.kept()) == (["E"], list("ABCD"))
    for file in place.unsent.glob("*.json"):
        file.unlink()
    assert place.send() == (0, [])


@pytest.mark.parametrize(
    "locked",
    [True, pytest.param(False, marks=pytest.mark.exhaustive)],
    ids=["one machine", "a bucket"],
)
def test_two_senders_at_once_send_each_run_once(place, monkeypatch, locked):
    import mlflow

    from components.run_report import unsent
    from components.run_report.mlflow_connection import connected

    place.add("A")
    place.add("B", pushes=False)
    if not locked:
        # Both processes create each run at the same moment.
        monkeypatch.setattr(unsent, "_sole_sender", lambda _: contextlib.nullcontext())
        meet = threading.Barrier(2)
        create = mlflow.MlflowClient.create_run

        def created(self, *arguments):
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait(5)
            return create(self, *arguments)

        monkeypatch.setattr(mlflow.MlflowClient, "create_run", created)
    ends = []

    def send(client):
        ends.extend(unsent.send_unsent(client, str(place.unsent)))

    with connected(place.server.uri) as client:
        senders = [in_background(lambda: send(client)) for _ in range(2)]
        for thread, _ in senders:
            thread.join()
    assert [error for _, raised in senders for error in raised] == []
    assert [end.problem for end in ends if end.problem] == []
    assert {end.run for end in ends} == {"A", "B"}
    assert len(ends) == 2 or not locked
    assert (place.ids(), place.kept()) == (["A", "B"], [])
    assert place.versions() == {1: "100"}


class Faulty:
    """A server in front of MLflow's that answers some requests with an error."""

    def __init__(self, uri):
        faulty = self
        self.faults, self.seen = {}, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0]
                faulty.seen.append(path)
                for end, statuses in faulty.faults.items():
                    if end in path and statuses:
                        return self.answer(statuses.pop(0), b"no")
                kept = {k: v for k, v in self.headers.items() if k.lower() != "host"}
                request = urllib.request.Request(
                    uri + self.path, body or None, kept, method=self.command
                )
                try:
                    with urllib.request.urlopen(request) as found:
                        return self.answer(found.status, found.read())
                except urllib.error.HTTPError as error:
                    return self.answer(error.code, error.read())

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def faulty(mlflow_server):
    server = Faulty(mlflow_server.uri)
    yield server
    server.close()


@pytest.mark.parametrize("status", [429, pytest.param(503, marks=pytest.mark.exhaustive)])
def test_a_server_that_is_busy_for_a_moment_gets_the_run(place, faulty, status):
    place.add("A")
    # The first request is not repeated.
    faulty.faults = {"experiments/search": [status]}
    faulty.faults |= {request: [status, status] for request in REQUESTS}
    assert place.send(faulty.uri) == (0, [f"sent A to {faulty.uri}"])
    assert {request for request, statuses in faulty.faults.items() if statuses} == set()
    assert (place.ids(), place.versions()) == (["A"], {1: "100"})


@pytest.mark.parametrize(
    "at",
    [
        "versions/create",
        *(
            pytest.param(request, marks=pytest.mark.exhaustive)
            for request in ("runs/create", "log-batch", "/artifacts/", "runs/update")
        ),
    ],
)
def test_a_second_attempt_completes_what_a_failed_one_has_sent(place, faulty, at):
    place.add("A")
    b_pushes = at == "versions/create"
    place.add("B", pushes=b_pushes)
    # All retries of the requests of A, and none of those of B.
    faulty.faults = {at: [500] * 4}
    code, lines = place.send(faulty.uri)
    assert code == 1
    assert lines[0].startswith(f"not sent: {place.unsent}/A.json: ")
    assert "500" in lines[0]
    assert lines[1] == f"sent B to {faulty.uri}"
    # The second failure.
    faulty.faults = {at: [500] * 4}
    assert place.send(faulty.uri)[0] == 1
    assert place.kept() == ["A"]
    assert place.send(faulty.uri) == (0, [f"sent A to {faulty.uri}"])
    assert place.ids() == ["A", "B"]
    assert len(place.versions()) == len(set(place.versions().values())) == 1 + b_pushes
    statuses = {run["info"]["status"] for run in place.server.runs(name=place.name)}
    assert statuses == {"FINISHED"}


@pytest.mark.exhaustive
def test_a_response_that_is_lost_creates_no_second_run(place, faulty, monkeypatch):
    import mlflow

    place.add("A")
    create = mlflow.MlflowClient.create_run

    def created(self, *arguments):
        create(self, *arguments)
        return create(self, *arguments)

    monkeypatch.setattr(mlflow.MlflowClient, "create_run", created)
    assert place.send(faulty.uri)[0] == 0
    assert place.ids() == ["A"]


def test_the_run_that_the_platform_has_opened_is_the_only_one(place, monkeypatch):
    from components.run_report.content import collect
    from components.run_report.tracking import TrackingServer, track

    experiment = place.server.call("experiments/create", name=place.name)["experiment_id"]
    opened = place.server.call("runs/create", experiment_id=experiment, run_name="of the platform")
    run_id = opened["run"]["info"]["run_id"]
    monkeypatch.setenv("MLFLOW_RUN_ID", run_id)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", place.server.uri)
    run = place.add("A")
    monkeypatch.delenv("MLFLOW_RUN_ID")
    # Also if it is sent later, by another process.
    assert place.send()[0] == 0
    [found] = place.server.runs(name=place.name)
    assert (found["info"]["run_id"], found["info"]["status"]) == (run_id, "RUNNING")
    tags = values(found["data"]["tags"])
    assert (tags["pipeline_run_id"], tags["result"]) == ("A", "pushed")
    assert 0 < values(found["data"]["metrics"])["accuracy"] < 1
    assert place.server.artifacts(found) >= {"report.html", "model"}
    # A second run in the same shell is not merged into it, and neither is that of another server.
    sent_to = TrackingServer(place.server.uri, str(place.unsent), place.name, {})
    for number, other in enumerate([run_id, "0" * 32, "projects/7/runs/9"]):
        monkeypatch.setenv("MLFLOW_RUN_ID", other)
        track(sent_to, collect(dataclasses.replace(run, id=f"B{number}")))
    assert place.ids() == ["A", "B0", "B1", "B2"]


def test_a_server_that_does_not_respond_is_named_once_and_all_runs_are_kept(place):
    place.add("A", pushes=False)
    place.add("B", pushes=False)
    code, [line] = place.send(NOWHERE)
    assert code == 1
    assert line.startswith(f"tracking.mlflow: {NOWHERE} does not respond (")
    assert place.kept() == ["A", "B"]


@pytest.mark.exhaustive
def test_a_run_that_was_kept_by_an_earlier_version_is_sent(place):
    place.add("A")
    file = place.unsent / "A.json"
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({key: kept[key] for key in ("run", "tags")}))
    assert place.send()[0] == 0
    assert (place.ids(), place.versions()) == (["A"], {1: "100"})


@pytest.mark.exhaustive
def test_a_rerun_of_a_rollback_that_was_killed_moves_the_alias(place):
    from components.serving_folder import ServingFolder

    place.add("A")
    place.add("B")
    assert place.send()[0] == 0
    assert (place.champion(), place.versions()) == (2, {1: "100", 2: "101"})
    # A rollback that is killed before it has moved the alias.
    ServingFolder(str(place.serving)).roll_back("100")
    code, [moved, error] = place.call("rollback", "100")
    assert (code, moved) == (2, f"MLflow: champion is version 1 of {place.name}")
    assert "version 100 is served already" in error
    assert place.champion() == 1
    # A version that cannot be loaded moves nothing.
    shutil.rmtree(place.serving / "101" / "variables")
    code, [error] = place.call("rollback", "101")
    assert (code, place.champion()) == (2, 1)
    assert "version 101 cannot be loaded: variables/ is missing" in error
