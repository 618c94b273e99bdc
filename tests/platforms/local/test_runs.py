"""The commands `runs` and `report` on a real ML Metadata store."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd
from typer.testing import CliRunner

from cli.app import app
from components.run_report.history import ERROR, VERSIONS, read_runs, record, record_outcome
from tests.outcomes import OUTCOME
from tests.platforms.local.store import Metadata

NODES = ("Trainer", "RunReport")
COMMAND = "from cli.command import main; main()"
RUNS = ("2026-01-01T10:00:00", "2026-01-02T10:00:00")


@pytest.fixture
def metadata(tmp_path):
    metadata = Metadata(tmp_path)
    for run, epochs, tfx in ((RUNS[0], 2, "1.16.0"), (RUNS[1], 3, "1.21.0")):
        training = {"model": "cnn_lstm", "epochs": epochs}
        metadata.add_run(run, {"training": training}, NODES)
        record(metadata.store, run, VERSIONS, json.dumps({"python": "3.10.13", "tfx": tfx}))
    record_outcome(metadata.store, RUNS[0], OUTCOME)
    record(metadata.store, RUNS[1], ERROR, "Trainer: out of [memory]")
    return metadata


@pytest.fixture
def call(tmp_path):
    def call(*arguments):
        done = CliRunner().invoke(app, [*arguments, "--set", f"paths.root={tmp_path}"])
        return done.exit_code, done.output

    return call


def test_the_runs_are_listed_newest_first(metadata, call):
    code, output = call("runs")
    assert code == 0
    heading, second, first = output.splitlines()
    columns = ["run", "started", "data", "model", "strategy", "seconds", "accuracy", "result"]
    assert heading.split() == columns
    assert (first.split()[0], second.split()[0]) == RUNS
    assert second.rstrip().endswith("failed")
    assert {"cnn_lstm", "OneDeviceStrategy", "0.9123", "pushed"} <= set(first.split())


def test_runs_of_more_than_two_classes_have_columns_of_their_own(metadata, call):
    metrics = {"accuracy": 0.91234, "macro F1": 0.45678}
    stars = dataclasses.replace(OUTCOME, class_count=5, metrics=metrics, auc=float("nan"))
    record_outcome(metadata.store, RUNS[0], stars)
    heading, second, first = call("runs")[1].splitlines()
    assert " ".join(heading.split()).endswith("seconds classes accuracy macro F1 result")
    assert first.split()[-4:] == ["5", "0.9123", "0.4568", "pushed"]
    assert second.split()[-4:] == ["–", "–", "–", "failed"]
    compared = call("runs", "compare", *RUNS)[1]
    [row] = [line for line in compared.splitlines() if line.startswith("macro F1")]
    assert row.split()[2:] == ["0.4568", "–", "–"]


def test_runs_on_spans_have_columns_of_their_own(metadata, call):
    spans = dataclasses.replace(OUTCOME, drift="alarm", severity="high")
    record_outcome(metadata.store, RUNS[0], spans)
    newest = {"newest_span": "2026-11-28"}
    metadata.add_run("2027", {}, ["ReviewExampleGen"], output="rejected", properties=newest)
    heading, failed, _, first = call("runs")[1].splitlines()
    names = "run started data span model strategy seconds accuracy alarm result"
    assert heading.split() == names.split()
    assert "2026-11-28" in failed and "2026-11-28" not in first
    assert first.split()[-2:] == ["high", "pushed"]


def test_the_start_of_a_run_is_the_time_at_which_its_record_began(tmp_path):
    before = time.time()
    metadata = Metadata(tmp_path)
    metadata.add_run(RUNS[0])
    [run] = read_runs(metadata.store)
    # ML Metadata stores milliseconds.
    assert before - 0.001 <= run.started <= time.time()


def test_a_killed_run_is_listed_and_the_list_may_be_json(metadata, call):
    settings = {"training": {"model": "text_cnn"}, "data": {"input_base": "/käufe"}}
    metadata.add_run("2027-01-01", settings, NODES, state="RUNNING")
    printed = call("runs", "--json")[1]
    newest, *others = json.loads(printed)
    found = (newest[key] for key in ("data", "model", "accuracy", "result"))
    assert tuple(found) == ("/käufe", "text_cnn", None, "unfinished")
    assert "/käufe" in printed
    assert 0.91234 in [row["accuracy"] for row in others]


def test_an_output_that_cannot_encode_a_character_gets_its_code(metadata, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "runs", "--set", f"paths.root={tmp_path}"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert r"\u2013" in done.stdout.decode("ascii").split()


def test_two_runs_are_compared_in_settings_and_results(metadata, call):
    code, output = call("runs", "compare", "2026-01-01", "2026-01-02")
    assert code == 0
    heading, note, *lines = output.splitlines()
    assert heading == f"run {RUNS[0]} → run {RUNS[1]}"
    assert note == "The runs may have other test reviews, so their metrics differ by chance too."
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    assert rows["training.epochs"] == ["2", "3"]
    assert rows["accuracy"] == ["0.9123", "–", "–"]
    assert rows["AUC"] == ["0.9500", "–", "–"]
    assert rows["result"] == ["pushed", "failed"]
    assert rows["tfx"] == ["1.16.0", "1.21.0"]
    assert "python" not in rows
    assert "training.model" not in rows


def test_the_history_is_a_page_with_a_picture(metadata, call, tmp_path):
    file = tmp_path / "runs.html"
    assert call("runs", "--html", str(file)) == (0, f"{file}\n")
    page = file.read_text()
    assert "The picture requires at least two runs that evaluated a model." in page
    rejected = dataclasses.replace(OUTCOME, accuracy=0.95, blessed=False)
    record_outcome(metadata.store, RUNS[1], rejected)
    assert call("runs", "--html", str(file))[0] == 0
    page = file.read_text()
    assert "The newest of 2 runs has the highest accuracy, 0.9500." in page
    assert '<svg role="img" aria-label="Accuracy of the last 2 runs"' in page
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    assert [RUNS[1] in row for row in rows[1:]] == [True, False]
    assert ">0.9123<" in rows[2]
    assert 'missed">failed<' in rows[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("runs", "compare", "2026-01-01", "1999"), "run 1999: no run has this id"),
        (("runs", "compare", "2026", "2026-01-01"), "run 2026: 2 ids begin with 2026;"),
        (("runs", "compare", "", "2026-01-01"), "FIRST: the value is empty"),
        (("report", "--run", "x"), "run x: no run has this id"),
        (
            ("report", "--output", "gs://bucket/report.html"),
            "--output: {cwd}/gs:/bucket/report.html",
        ),
        (("report", "--output", "/missing/report.html"), "--output: /missing/report.html cannot"),
        (("report", "--output", "/"), "--output: / is not a regular file;"),
        (("runs", "--html", "/missing/a.html"), "--html: /missing/a.html cannot be written"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(metadata, call, arguments, message):
    code, output = call(*arguments)
    assert code == 2
    assert output.strip().splitlines()[-1].startswith(message.format(cwd=os.getcwd()))


def test_an_outcome_that_cannot_be_read_is_2_and_one_line(metadata, call):
    record(metadata.store, RUNS[0], "outcome", '{"accuracy": 0.9}')
    code, output = call("runs")
    assert code == 2, output
    [line] = output.splitlines()
    assert line.startswith(f"paths.metadata: the outcome of the run {RUNS[0]} cannot be read (")


@pytest.mark.parametrize("command", ["run", "runs"])
def test_metadata_that_cannot_be_opened_is_2_and_one_line(call, tmp_path, command):
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"SQLite format 3\0 and no table")
    code, output = call(command, "--set", f"paths.metadata='{damaged}'")
    assert code == 2, output
    [line] = output.splitlines()
    assert line.startswith("paths.metadata: ")
    assert "file is not a database" in line
    assert "CREATE TABLE" not in line


def test_without_a_run_no_database_is_created(call, tmp_path):
    code, output = call("runs")
    assert code == 2
    assert "amazon-reviews run" in output
    assert not (tmp_path / "metadata.sqlite").exists()


@pytest.mark.parametrize("command", ["runs", "report"])
def test_the_runs_of_a_cluster_are_not_looked_for_on_this_machine(call, command):
    code, output = call(command, "--set", "paths.metadata=gs://bucket/runs/metadata.sqlite")
    assert code == 2
    [line] = output.splitlines()
    assert line.startswith("paths.metadata: gs://bucket/runs/metadata.sqlite is not a file; ")
    assert "the page of the cluster" in line and "amazon-reviews run" not in line


def test_the_report_of_a_failed_run(metadata, call, tmp_path):
    file = tmp_path / "r.html"
    code, output = call("report", "--output", str(file))
    assert (code, output.strip()) == (0, str(file))
    page = file.read_text()
    assert "Trainer: out of [memory]" in page
    assert "Settings that differ from the defaults" in page
    changed = page.partition("Table of the changed settings")[2].partition("</table>")[0]
    assert re.findall('<th scope="row" class="mono">([^<]*)<', changed) == [
        *("training.model", "training.epochs")
    ]
    # The versions are those of the run, not those of the process that writes the report.
    assert '<th scope="row">tfx</th><td>1.21.0</td>' in page


def test_the_report_shows_the_newest_span(metadata, call, tmp_path):
    span = {"newest_span": "2026-11-28"}
    metadata.add_run("2027", {}, ["ReviewExampleGen"], output="rejected", properties=span)
    file = tmp_path / "r.html"
    assert call("report", "--output", str(file))[0] == 0
    assert 'newest span <span class="mono">2026-11-28</span>' in file.read_text()


@pytest.mark.slow
def test_a_model_is_pushed_again_if_this_machine_pushed_it_and_another_one_is_served(tmp_path):
    from components.serving_folder import ServingFolder
    from platforms.local.run import mark_replaced
    from tests.serving.models import push

    store, serving = Metadata(tmp_path).store, tmp_path / "serving"
    push(serving / "2")
    # Damaged, so no server loads it.
    push(serving / "3")
    next((serving / "3").glob("variables/*.data-*")).write_bytes(b"")
    kind = store.put_artifact_type(mlmd.ArtifactType(name="PushedModel"))
    for folder, uri in (
        (serving / "1", tmp_path),
        (serving / "2", tmp_path),
        (serving / "3", tmp_path),
        (tmp_path / "other" / "1", tmp_path),
        (serving / "1", tmp_path / "on another machine"),
    ):
        artifact = mlmd.Artifact(type_id=kind, uri=str(uri), state=mlmd.Artifact.LIVE)
        artifact.custom_properties["pushed"].int_value = 1
        artifact.custom_properties["pushed_destination"].string_value = str(folder)
        store.put_artifacts([artifact])
    mark_replaced(Mock(store=store), ServingFolder(f"{serving}/"))
    states = [artifact.state == mlmd.Artifact.LIVE for artifact in store.get_artifacts()]
    assert states == [False, True, False, True, True]
    # Somebody has deleted all versions.
    shutil.rmtree(serving)
    mark_replaced(Mock(store=store), ServingFolder(f"{serving}/"))
    states = [artifact.state == mlmd.Artifact.LIVE for artifact in store.get_artifacts()]
    assert states == [False, False, False, True, True]
