"""The container's command: corrected inputs, properties, exit codes, folder markers."""

import importlib.util
import json
import re
import shutil
import sys
from functools import partial
from unittest.mock import Mock

import pytest
from google.cloud import storage
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

from cli.init import create_project
from components.properties import COMPONENT_FILE, TRACKING
from components.review_example_gen.inputs import Options
from components.run_report import mlflow_connection, tracking
from components.run_report.tracking import TrackingServer
from core.errors import InputError
from pipeline.project import component_files
from platforms import entrypoint
from platforms import executor_input as launcher
from platforms.entrypoint import main
from platforms.executor_input import correct_inputs, write_properties
from preprocessing.labels import SENTIMENT, write_labels
from tests import examples
from tests.checkout import CHECKOUT

TYPES = {
    name: {"instanceSchema": f"title: tfx.{title}\ntype: object\n"}
    for name, title in (
        ("anomalies", "ExampleAnomalies"),
        ("statistics", "ExampleStatistics"),
        ("examples", "Examples"),
    )
}
SPEC = {"artifacts": {name: {"artifactType": declared} for name, declared in TYPES.items()}}
# The types in the input from Kubeflow Pipelines and from kfp.local.
EMPTY = {"type": {"instanceSchema": ""}}
SYSTEM = {"type": {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"}}
# With PUBLISH_LOGS=true, as in the standard manifests, Kubeflow adds this output to every step.
LOGS = {"name": "executor-logs", "uri": "gs://bucket/root/executor-logs", **SYSTEM}
CHECKED = {"instanceSchema": "title: components.CheckedData\ntype: object\n"}


def artifacts(**given):
    return {name: {"artifacts": [artifact]} for name, artifact in given.items()}


def executor_input(folder, given):
    metadata = {"split_names": '["train"]'}
    anomalies = {"name": "a", "uri": f"{folder}/anomalies", "metadata": metadata, **given}
    statistics = {"name": "s", "uri": f"{folder}/statistics", "metadata": {}, **given}
    examples = {"name": "e", "uri": f"{folder}/examples", "metadata": metadata, **given}
    checked = {"name": "c", "uri": f"{folder}/checked", "type": CHECKED}
    return {
        "inputs": {
            "artifacts": artifacts(anomalies=anomalies, statistics=statistics, examples=examples)
        },
        "outputs": {
            "artifacts": artifacts(checked=checked),
            "outputFile": f"{folder}/task/executor_output.json",
        },
    }


def corrected(step_input, spec):
    correct_inputs(step_input, spec)
    return step_input


def call(executor, step_input, *more):
    return main(
        [
            *("--executor_class_path", executor),
            *("--json_serialized_inputs_spec_args", json.dumps(SPEC)),
            *("--json_serialized_invocation_args", json.dumps(step_input)),
            *more,
        ]
    )


def run_gate(folder, given, anomalies):
    """Run the step DataGate as in its container, but in this process."""
    step_input = executor_input(folder, given)
    step_input["outputs"]["artifacts"] |= artifacts(**{"executor-logs": LOGS})
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    for name, file, message in (
        ("anomalies", "SchemaDiff.pb", anomalies),
        ("statistics", "FeatureStats.pb", statistics),
    ):
        split = folder / name / "Split-train"
        split.mkdir(parents=True)
        (split / file).write_bytes(message.SerializeToString())
    (folder / "examples").mkdir()
    write_labels(str(folder / "examples"), SENTIMENT)
    return call("components.data_gate.DataGate_Executor", step_input)


@pytest.mark.slow
def test_a_step_runs_although_kubeflow_drops_types_and_adds_an_output(tmp_path):
    assert run_gate(tmp_path, EMPTY, anomalies_pb2.Anomalies()) == 0
    assert (tmp_path / "checked" / "checked.json").is_file()
    output = json.loads((tmp_path / "task" / "executor_output.json").read_text())
    assert output["artifacts"]["checked"]["artifacts"][0]["uri"] == str(tmp_path / "checked")


@pytest.mark.slow
def test_bad_data_is_one_line_and_exit_code_2(tmp_path, capsys):
    anomalies = anomalies_pb2.Anomalies()
    anomalies.anomaly_info["text"].short_description = "Column dropped"
    assert run_gate(tmp_path, SYSTEM, anomalies) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("components.data_gate.DataGate_Executor: ")
    assert "text: Column dropped" in last
    assert not (tmp_path / "task").exists()


@pytest.mark.slow
def test_deleted_files_of_an_earlier_run_that_the_cache_reuses_are_named(tmp_path, capsys):
    assert run_gate(tmp_path, SYSTEM, anomalies_pb2.Anomalies()) == 0
    gate, statistics = "components.data_gate.DataGate_Executor", tmp_path / "statistics"
    shutil.rmtree(statistics)
    assert call(gate, executor_input(tmp_path, SYSTEM)) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"{gate}: {statistics}: the files of the input statistics were deleted, and the cache "
        "reuses the run that wrote them; submit with --set cache=false until the input files or "
        "cluster.image change"
    )
    statistics.mkdir()
    assert call(gate, executor_input(tmp_path, SYSTEM)) == 2
    assert "cluster.image" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_step_of_a_project_runs_the_code_in_its_environment(tmp_path, monkeypatch):
    create_project(tmp_path / "mine")
    [file] = component_files(str(tmp_path / "mine"))
    shutil.rmtree(tmp_path / "mine")
    monkeypatch.setenv(COMPONENT_FILE, file.model_dump_json())
    split = tmp_path / "examples" / "Split-train"
    split.mkdir(parents=True)
    write_labels(str(tmp_path / "examples"), SENTIMENT)
    examples.write(split / "part.gz", [examples.example(label=[n]) for n in (0, 1, 1, 1)])
    step_input = executor_input(tmp_path, SYSTEM)
    kind = {"instanceSchema": "title: components.ProjectOutput\ntype: object\n"}
    shares = {"name": "s", "uri": f"{tmp_path}/shares", "type": kind}
    step_input["outputs"]["artifacts"] = artifacts(shares=shares)
    assert call(f"{file.module}.ClassShares_Executor", step_input) == 0
    written = json.loads((tmp_path / "shares" / "shares.json").read_text())
    assert written == {"train": {"negative": 0.25, "positive": 0.75}}


def run_main(monkeypatch, step, folder="/x"):
    """Return the exit code of a step; the function `step` gets what TFX gets."""
    monkeypatch.setattr(kubeflow_v2_run_executor, "main", step)
    if folder.startswith("gs://"):
        # TensorFlow does not know the bucket on loopback.
        monkeypatch.setattr(launcher, "_properties", lambda uri: {})
        monkeypatch.setattr(entrypoint, "write_properties", lambda executor_input: None)
    return call("some.Executor", executor_input(folder, {}), "--direct_num_workers=2")


@pytest.mark.parametrize(
    ("end", "code"),
    [(None, 0), (RuntimeError("the disk is full"), 1), (InputError("no review is left"), 2)],
)
def test_a_step_gets_the_corrected_input_and_returns_its_exit_code(
    monkeypatch, capsys, log, end, code
):
    step = Mock(side_effect=end)
    assert run_main(monkeypatch, step) == code
    [(given, beam_args)] = step.call_args.args
    assert beam_args == ["--direct_num_workers=2"]
    mended = json.loads(given.json_serialized_invocation_args)
    assert mended == corrected(executor_input("/x", {}), SPEC)
    assert capsys.readouterr().err == (
        "some.Executor: no review is left\n" if isinstance(end, InputError) else ""
    )
    assert ("RuntimeError: the disk is full" in log.text) == isinstance(end, RuntimeError)


def test_a_run_without_a_pipeline_root_of_its_own_is_one_line(monkeypatch, capsys, tmp_path):
    run = Mock()
    monkeypatch.setattr(kubeflow_v2_run_executor, "main", run)
    assert call("any.Executor", executor_input("minio://mlpipeline/v2/artifacts", EMPTY)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "any.Executor: the pipeline root of this run: a step cannot write "
        "minio://mlpipeline/v2/artifacts/checked; start the run with paths.root"
    )
    run.assert_not_called()


def test_an_image_without_mlflow_is_one_line_at_the_first_step(monkeypatch, capsys, tmp_path):
    tracked = TrackingServer("http://mlflow:5000", str(tmp_path), "reviews", {})
    monkeypatch.setenv(TRACKING, tracked.to_json())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert run_main(monkeypatch, Mock()) == 2
    error = capsys.readouterr().err
    assert "some.Executor: tracking.mlflow: MLflow is not installed" in error
    # The package itself may be on no index, so its extra cannot be installed by name.
    project, page = CHECKOUT / "pyproject.toml", CHECKOUT / "docs" / "how-to" / "mlflow.md"
    [client] = re.findall(r'^mlflow = \["(.+)"\]$', project.read_text(), re.MULTILINE)
    for text in (error, page.read_text()):
        assert f"pip install '{client}'" in text


def without_outputs(folder, output_file):
    """Return the input of a step without output artifacts, whose empty map the JSON omits."""
    return {"inputs": {}, "outputs": {"outputFile": f"{folder}/{output_file}"}}


def test_a_component_without_outputs_succeeds(monkeypatch, tmp_path):
    monkeypatch.setattr(kubeflow_v2_run_executor, "main", Mock())
    assert call("some.Executor", without_outputs(tmp_path, "executor_output.json")) == 0


@pytest.mark.parametrize(
    ("folder", "run_id"),
    [("gs://bucket/root/123/run-7/Notify_42", "run-7"), ("/tmp/kfp_outputs", None)],
)
def test_the_failure_of_a_component_without_outputs_keeps_its_cause(
    monkeypatch, capsys, log, tmp_path, folder, run_id
):
    tracked = TrackingServer("http://mlflow:5000", str(tmp_path), "reviews", {})
    monkeypatch.setenv(TRACKING, tracked.to_json())
    monkeypatch.setattr(mlflow_connection, "check_client", lambda: None)
    # MLflow fails too, with any error.
    track = Mock(side_effect=OSError("the disk is full"))
    monkeypatch.setattr(tracking, "track", track)
    step = Mock(side_effect=InputError("no review is left"))
    monkeypatch.setattr(kubeflow_v2_run_executor, "main", step)
    assert call("some.Executor", without_outputs(folder, "executor_output.json")) == 2
    assert capsys.readouterr().err == "some.Executor: no review is left\n"
    assert [each.args[1].run.id for each in track.call_args_list] == ([run_id] if run_id else [])
    reason = "OSError: the disk is full" if run_id else "the step has no output artifact, whose URI"
    assert f"tracking.mlflow: the failure of this run was not sent: {reason}" in log.text


def test_a_later_step_gets_the_properties_that_its_launcher_drops(tmp_path):
    def properties(uri, **more):
        given = {"inputs": {"artifacts": artifacts(examples={"uri": uri, **more})}}
        [artifact] = corrected(given, {})["inputs"]["artifacts"]["examples"]["artifacts"]
        return artifact["metadata"]

    uri, written = str(tmp_path / "examples"), {"split_names": '["train"]', "version": "2"}
    plain = {"name": "2", "uri": str(tmp_path / "plain"), "metadata": {}}
    outputs = artifacts(examples={"name": "1", "uri": uri, "metadata": written}, plain=plain)
    output = tmp_path / "executor_output.json"
    output.write_text(json.dumps({"artifacts": outputs}))
    write_properties({"outputs": {"artifacts": {}, "outputFile": str(output)}})
    assert properties(uri) == properties(f"{uri}/") == written
    assert properties(uri, metadata={"version": "3"}) == {**written, "version": "3"}
    assert properties(str(tmp_path / "model")) == {}
    # Nothing is inside the artifact.
    assert not (tmp_path / "examples").exists()
    assert len(list(tmp_path.glob("*.properties.json"))) == 1


def test_a_property_that_a_cluster_would_change_is_read_from_the_file(tmp_path):
    uri = str(tmp_path / "rejected")
    changed = {
        "a": "5 $$",
        "b": "$(HOME)",
        "c": "{{workflow.name}}",
        "d": "\U000e0067",
        "e": "\x7f",
    }
    kept = {"classes": "$ { 5 \u20ac", "matrix": {"names": ["$$"]}, "lines": 3}
    output = tmp_path / "executor_output.json"
    outputs = artifacts(rejected={"name": "1", "uri": uri, "metadata": {**changed, **kept}})
    output.write_text(json.dumps({"artifacts": outputs}))
    write_properties({"outputs": {"artifacts": {}, "outputFile": str(output)}})
    [passed] = json.loads(output.read_text())["artifacts"]["rejected"]["artifacts"]
    assert passed == {"name": "1", "uri": uri, "metadata": kept}
    given = {"inputs": {"artifacts": artifacts(rejected=passed)}}
    [read] = corrected(given, {})["inputs"]["artifacts"]["rejected"]["artifacts"]
    assert read["metadata"] == {**changed, **kept}


def test_the_folder_markers_of_a_step_are_deleted_and_nothing_else(monkeypatch):
    kept = {"run/checked/a.json": 2, "run/checked/empty": 0, "run/checked/odd/": 5, "other/": 0}
    bucket = dict(kept)

    def list_blobs(name, prefix):
        assert name == "bucket"
        found = []
        for blob in [each for each in bucket if each.startswith(prefix)]:
            found.append(Mock(size=bucket[blob], delete=partial(bucket.pop, blob)))
            found[-1].name = blob
        return found

    def step(_):
        bucket.update({"run/checked/": 0, "run/checked/deep/": 0})

    monkeypatch.setattr(storage, "Client", lambda: Mock(list_blobs=list_blobs))
    assert run_main(monkeypatch, step, "gs://bucket/run") == 0
    assert bucket == kept


def test_a_pipeline_that_other_code_compiled_is_one_line(monkeypatch, capsys):
    def step(_):
        Options.model_validate_json('{"patterns": {}, "colour": 1}')

    assert run_main(monkeypatch, step) == 2
    [line] = capsys.readouterr().err.splitlines()
    beginning = (
        "some.Executor: the image contains another version of the code than the compiled pipel"
    )
    assert line.startswith(beginning) and "colour Extra inputs" in line
