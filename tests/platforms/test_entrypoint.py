"""The container's command: corrected inputs, exit codes, folder markers."""

import json
import os
import runpy
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2

from core.errors import InputError
from platforms import entrypoint
from platforms.entrypoint import (
    check_integers,
    delete_folder_markers,
    main,
    with_declared_types,
    writable_setup_file,
)

DECLARED = {"instanceSchema": "title: tfx.ExampleAnomalies\ntype: object\n"}
SPEC = {"artifacts": {"anomalies": {"artifactType": DECLARED}}}
# The types in the input from Kubeflow Pipelines, from kfp.local, and from a launcher without types.
BROKEN = {
    "empty": {"type": {"instanceSchema": ""}},
    "system": {"type": {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"}},
    "missing": {},
}


def executor_input(folder, given):
    return {
        "inputs": {
            "artifacts": {
                "anomalies": {
                    "artifacts": [
                        {
                            "name": "anomalies",
                            "uri": f"{folder}/anomalies",
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
                            "uri": f"{folder}/checked",
                            "type": {
                                "instanceSchema": "title: components.CheckedData\ntype: object\n"
                            },
                        }
                    ]
                }
            },
            "outputFile": f"{folder}/task/executor_output.json",
        },
    }


# With PUBLISH_LOGS=true, as in the standard manifests, Kubeflow adds this output to every step.
LOGS = {
    "artifacts": [
        {
            "name": "executor-logs",
            "uri": "gs://bucket/root/executor-logs",
            "type": {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"},
        }
    ]
}


def run_gate(folder, given, anomalies):
    step_input = executor_input(folder, given)
    step_input["outputs"]["artifacts"]["executor-logs"] = LOGS
    split = folder / "anomalies" / "Split-train"
    split.mkdir(parents=True)
    (split / "SchemaDiff.pb").write_bytes(anomalies.SerializeToString())
    return subprocess.run(
        [
            *(sys.executable, "-m", "platforms.entrypoint"),
            *("--executor_class_path", "components.data_gate.DataGate_Executor"),
            *("--json_serialized_invocation_args", json.dumps(step_input)),
            *("--json_serialized_inputs_spec_args", json.dumps(SPEC)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("given", BROKEN.values(), ids=BROKEN)
def test_a_step_runs_whatever_type_its_inputs_have_and_whatever_kubeflow_adds(tmp_path, given):
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
    assert last.startswith("components.data_gate.DataGate_Executor: ")
    assert "text: Column dropped" in last
    assert not (tmp_path / "task").exists()


ENDS = {
    "done": (None, 0),
    "exit": (SystemExit(), 0),
    "exit 0": (SystemExit(0), 0),
    "exit 3": (SystemExit(3), 3),
    "exit with a message": (SystemExit("no such executor"), 1),
    "crash": (RuntimeError("the disk is full"), 1),
    "wrong input": (InputError("no review is left"), 2),
}


def run_main(monkeypatch, step, folder="/x"):
    """Return the exit code of a step whose executor is the function `step`."""

    def run_module(*arguments, **keywords):
        step()

    monkeypatch.setattr(runpy, "run_module", run_module)
    monkeypatch.setattr(sys, "argv", sys.argv)
    if folder.startswith("gs://"):
        # TensorFlow does not know the bucket on loopback.
        monkeypatch.setattr(entrypoint, "with_properties", lambda executor_input: executor_input)
        monkeypatch.setattr(entrypoint, "write_properties", lambda executor_input: None)
    return main(
        [
            *("--executor_class_path", "some.Executor"),
            *("--json_serialized_inputs_spec_args", json.dumps(SPEC)),
            *("--json_serialized_invocation_args", json.dumps(executor_input(folder, {}))),
            "--direct_num_workers=2",
        ]
    )


@pytest.mark.parametrize(("end", "code"), ENDS.values(), ids=ENDS)
def test_the_exit_code_is_that_of_the_step(monkeypatch, capsys, log, end, code):
    def step():
        if end is not None:
            raise end

    assert run_main(monkeypatch, step) == code
    assert capsys.readouterr().err == (
        "some.Executor: no review is left\n" if isinstance(end, InputError) else ""
    )
    assert ("RuntimeError: the disk is full" in log.text) == isinstance(end, RuntimeError)


def test_tfx_gets_the_corrected_input_and_the_beam_arguments(monkeypatch):
    found = []
    run_main(monkeypatch, lambda: found.extend(sys.argv[1:]))
    *known, beam = found
    values = dict(zip(known[::2], known[1::2], strict=True))
    assert beam == "--direct_num_workers=2"
    assert values.pop("--executor_class_path") == "some.Executor"
    assert json.loads(values.pop("--json_serialized_inputs_spec_args")) == SPEC
    mended = json.loads(values.pop("--json_serialized_invocation_args"))
    assert mended == with_declared_types(executor_input("/x", {}), SPEC)
    assert values == {}


def test_a_step_with_arguments_that_are_not_json_fails():
    broken = ("--executor_class_path", "E", "--json_serialized_invocation_args", "{")
    done = subprocess.run(
        [sys.executable, "-m", "platforms.entrypoint", *broken], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "JSONDecodeError" in done.stderr


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


@pytest.mark.parametrize("value", [2.5, "2.5", "many", True, None, [2]])
def test_an_integer_parameter_is_an_integer(value):
    declared = {"epochs": {"parameterType": "NUMBER_INTEGER"}, "rate": {"parameterType": "NUMBER"}}
    spec = {"parameters": declared}
    for whole in (2, 2.0, "2"):
        check_integers({"inputs": {"parameterValues": {"epochs": whole, "rate": 0.5}}}, spec)
    check_integers({}, spec)
    with pytest.raises(InputError, match=r"parameter epochs: must be an integer, not "):
        check_integers({"inputs": {"parameterValues": {"epochs": value}}}, spec)


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


@pytest.fixture
def bucket(monkeypatch):
    """A bucket on loopback with this content: name -> size in bytes."""
    Bucket.objects = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield Bucket.objects
    server.shutdown()
    server.server_close()


def test_folder_markers_are_deleted_and_nothing_else(bucket):
    bucket |= {
        "run/model/": 0,
        "run/model/Format-Serving/": 0,
        "run/model/Format-Serving/saved_model.pb": 7,
        "run/model/empty": 0,
        "run/model/odd/": 5,
        "other/": 0,
    }
    delete_folder_markers(["/local/folder", "gs://bucket/run/model"])
    assert set(bucket) == {
        "run/model/Format-Serving/saved_model.pb",
        "run/model/empty",
        "run/model/odd/",
        "other/",
    }


@pytest.mark.parametrize("end", [None, SystemExit(0)], ids=["done", "exit 0"])
def test_the_folder_markers_that_a_step_leaves_are_deleted(bucket, monkeypatch, end):
    def step():
        bucket.update({"run/checked/": 0, "run/checked/checked.json": 2, "run/anomalies/": 0})
        if end is not None:
            raise end

    assert run_main(monkeypatch, step, "gs://bucket/run") == 0
    assert set(bucket) == {"run/checked/checked.json", "run/anomalies/"}


def test_a_read_only_package_for_dataflow_is_copied(tmp_path, monkeypatch):
    (tmp_path / "package" / "core").mkdir(parents=True)
    setup = tmp_path / "package" / "setup.py"
    setup.write_text("setup()")
    arguments = ["--runner=DataflowRunner", f"--setup_file={setup}", "--setup_file=/none/setup.py"]
    assert writable_setup_file(arguments) == arguments
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    runner, copied, missing = writable_setup_file(arguments)
    assert [runner, missing] == [arguments[0], arguments[2]]
    copy = Path(copied.removeprefix("--setup_file="))
    assert copy != setup and copy.name == "setup.py" and copy.read_text() == "setup()"
    assert (copy.parent / "core").is_dir()
