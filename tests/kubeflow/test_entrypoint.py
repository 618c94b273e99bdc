"""The container's command: broken inputs mended, exit codes, folder markers."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2

from kubeflow.entrypoint import delete_folder_markers, with_declared_types

DECLARED = {"instanceSchema": "title: tfx.ExampleAnomalies\ntype: object\n"}
SPEC = {"artifacts": {"anomalies": {"artifactType": DECLARED}}}
# What Kubeflow Pipelines, kfp.local, and a launcher that knows no type hand over.
BROKEN = {
    "empty": {"type": {"instanceSchema": ""}},
    "system": {"type": {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"}},
    "missing": {},
}


def executor_input(folder, given):
    folder = Path(folder)
    return {
        "inputs": {
            "artifacts": {
                "anomalies": {
                    "artifacts": [
                        {
                            "name": "anomalies",
                            "uri": str(folder / "anomalies"),
                            "metadata": {"split_names": '["train"]'},
                            **given,
                        }
                    ]
                }
            }
        },
        "outputs": {
            "artifacts": {
                "checked": {
                    "artifacts": [
                        {
                            "name": "checked",
                            "uri": str(folder / "checked"),
                            "type": {
                                "instanceSchema": "title: components.CheckedData\ntype: object\n"
                            },
                        }
                    ]
                }
            },
            "outputFile": str(folder / "task" / "executor_output.json"),
        },
    }


def run_gate(folder, given, anomalies):
    split = folder / "anomalies" / "Split-train"
    split.mkdir(parents=True)
    (split / "SchemaDiff.pb").write_bytes(anomalies.SerializeToString())
    return subprocess.run(
        [
            *(sys.executable, "-m", "kubeflow.entrypoint"),
            *("--executor_class_path", "components.data_gate.executor.Executor"),
            *("--json_serialized_invocation_args", json.dumps(executor_input(folder, given))),
            *("--json_serialized_inputs_spec_args", json.dumps(SPEC)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("given", BROKEN.values(), ids=BROKEN)
def test_a_step_runs_whatever_type_its_inputs_have(tmp_path, given):
    done = run_gate(tmp_path, given, anomalies_pb2.Anomalies())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "checked" / "checked.json").is_file()
    output = json.loads((tmp_path / "task" / "executor_output.json").read_text())
    assert output["artifacts"]["checked"]["artifacts"][0]["uri"] == str(tmp_path / "checked")
    assert "tfx 1." in done.stderr and "on Python 3." in done.stderr


@pytest.mark.slow
def test_bad_data_is_one_line_and_exit_code_2(tmp_path):
    anomalies = anomalies_pb2.Anomalies()
    anomalies.anomaly_info["text"].short_description = "Column dropped"
    done = run_gate(tmp_path, BROKEN["system"], anomalies)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("components.data_gate.executor.Executor: ")
    assert "text: Column dropped" in last
    assert not (tmp_path / "task").exists()


@pytest.mark.parametrize("given", BROKEN.values(), ids=BROKEN)
def test_inputs_get_their_declared_type(given):
    mended = with_declared_types(executor_input("/x", given), SPEC)
    [artifact] = mended["inputs"]["artifacts"]["anomalies"]["artifacts"]
    assert artifact["type"] == DECLARED
    assert artifact["metadata"] == {"split_names": '["train"]'}
    assert mended["outputs"] == executor_input("/x", given)["outputs"]


def test_a_type_that_nobody_declared_stays():
    given = {"type": {"schemaTitle": "tfx.ExampleAnomalies"}}
    mended = with_declared_types(executor_input("/x", given), {})
    [artifact] = mended["inputs"]["artifacts"]["anomalies"]["artifacts"]
    assert artifact["type"] == given["type"]


class Bucket(BaseHTTPRequestHandler):
    """The two calls of Google Cloud Storage's JSON API: list and delete."""

    objects: dict[str, int] = {}

    def do_GET(self):
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        items = [
            {"name": name, "size": str(size), "bucket": "bucket"}
            for name, size in self.objects.items()
            if name.startswith(prefix)
        ]
        self._answer(200, json.dumps({"items": items}).encode())

    def do_DELETE(self):
        del self.objects[unquote(urlsplit(self.path).path.split("/o/", 1)[1])]
        self._answer(204, b"")

    def _answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def test_folder_markers_are_deleted_and_nothing_else(monkeypatch):
    Bucket.objects = {
        "run/model/": 0,
        "run/model/Format-Serving/": 0,
        "run/model/Format-Serving/saved_model.pb": 7,
        "run/model/empty": 0,
        "run/model/odd/": 5,
        "other/": 0,
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    try:
        delete_folder_markers(["/local/folder", "gs://bucket/run/model"])
    finally:
        server.shutdown()
        server.server_close()
    assert set(Bucket.objects) == {
        "run/model/Format-Serving/saved_model.pb",
        "run/model/empty",
        "run/model/odd/",
        "other/",
    }
