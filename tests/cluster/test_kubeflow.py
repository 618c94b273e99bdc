"""The compiled pipeline on a real Kubeflow Pipelines, with the commands of the guide."""

import json
import re
import subprocess
import time

import pytest
import tensorflow as tf
from google.protobuf import json_format

from tests.checkout import CHECKOUT
from tests.cluster.training_ground import kind_named, skip_without
from tests.exhaustive import exhaustive
from tests.waiting import wait

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]

FLAG = "\U0001f3f4\U000e0067\U000e007f"
REPLACED = ("$$", "$(HOME)", "{{workflow.name}}", "{{=1+1}}", "{{ a", FLAG)
NEVER_CACHED = {"ServedModel", "Evaluator", "ServingCheck", "Pusher", "RunReport"}


@pytest.fixture(scope="module")
def sample(kubeflow):
    """The lines about the run of the sample pipeline, and the run's id."""
    lines = kubeflow("submit", "--wait")
    return lines, run_in(lines)


def test_the_sample_pipeline_ends_with_a_pushed_model(kubeflow, sample):
    lines, run_id = sample
    assert " succeeded after " in lines
    executors = kubeflow.executors(run_id)
    assert executors.keys() > NEVER_CACHED | {"ReviewExampleGen", "Trainer"}
    assert "Pushed to" in kubeflow.log(executors["Pusher"])
    accounts = {pod.spec.service_account_name for pod in kubeflow.pods(run_id)}
    assert accounts == {kubeflow.config.kubeflow.service_account or "pipeline-runner"}


def test_the_pages_of_kubeflow_get_the_results_from_ml_metadata(kubeflow, sample):
    artifacts = kubeflow.artifacts(sample[1])
    for name, type_, keys in (
        ("metrics", "system.Metrics", {"accuracy", "AUC"}),
        ("classification", "system.ClassificationMetrics", {"confusionMatrix"}),
        ("report", "system.HTML", set()),
    ):
        [found] = [each for each in artifacts if each.type == type_]
        assert found.uri.startswith("gs://") and found.uri.endswith(name)
        assert keys <= found.custom_properties.keys()


def test_five_classes_end_with_a_pushed_model_and_their_matrix_on_the_page(kubeflow):
    lines = kubeflow("submit", "--wait", *kubeflow.preset("stars"))
    assert " succeeded after " in lines
    run_id = run_in(lines)
    assert "Pushed to" in kubeflow.log(kubeflow.executors(run_id)["Pusher"])
    by_type = {each.type: each for each in kubeflow.artifacts(run_id)}
    metrics = by_type["system.Metrics"].custom_properties
    assert {"accuracy", "macro F1", "mean absolute error"} <= metrics.keys()
    shown = by_type["system.ClassificationMetrics"].custom_properties["confusionMatrix"]
    matrix = json_format.MessageToDict(shown.struct_value)["struct"]
    names = [each["displayName"] for each in matrix["annotationSpecs"]]
    assert names == ["1", "2", "3", "4", "5"]
    rows = [row["row"] for row in matrix["rows"]]
    assert [len(row) for row in rows] == [5] * 5
    right = sum(row[label] for label, row in enumerate(rows)) / sum(map(sum, rows))
    assert right == pytest.approx(metrics["accuracy"].double_value, abs=1e-5)


def test_texts_that_a_cluster_would_replace_are_the_classes_of_the_model(kubeflow, tmp_path):
    folder = f"{kubeflow.config.paths.root}/replaced-{int(time.time())}"
    tf.io.gfile.makedirs(f"{folder}/raw")
    with tf.io.gfile.GFile(f"{folder}/raw/texts.csv", "w") as file:
        lines = (
            f"{name},word{of} text {n}\n" for n in range(100) for of, name in enumerate(REPLACED)
        )
        file.write("label,text\n" + "".join(lines))
    golden = tmp_path / "golden.tsv"
    golden.write_text("".join(f"{name}\tword{of} $$ {name}\n" for of, name in enumerate(REPLACED)))
    labels = json.dumps(dict(zip(REPLACED, REPLACED, strict=True)), ensure_ascii=False)
    settings = (
        f"data={{input_base: {folder}/raw, labels: {labels}}}",
        f"paths={{root: {folder}, serving: {folder}/serving, checkpoints: {folder}/checkpoints}}",
        f"serving_check.golden={golden}",
        "training.model=ngram_linear",
        "training.epochs=3",
    )
    words = [word for each in settings for word in ("--set", each)]
    lines = kubeflow("submit", "--wait", *words)
    executors = kubeflow.executors(run_in(lines))
    log = kubeflow.log(executors["ServingCheck"])
    for name in REPLACED:
        assert f"Result(name={f'golden_{name}'!r}, value=1.0" in log
    assert "Pushed to" in kubeflow.log(executors["Pusher"])


def test_a_parameter_and_the_cache_and_the_volume(kubeflow, sample):
    volume = kubeflow.config.kubeflow.volume
    if volume is None:
        pytest.skip("kubeflow.volume is not set")
    serving = f"paths.serving={volume.mount}/serving"
    lines = kubeflow("submit", "--wait", "--parameter", "epochs=1", "--set", serving)
    executors = kubeflow.executors(run_in(lines))
    assert set(executors) == NEVER_CACHED | {"Trainer"}
    # The sample has two epochs, and each ends with a checkpoint.
    assert kubeflow.log(executors["Trainer"]).count("Checkpoint after step") == 1
    assert f"{volume.mount}/serving/" in kubeflow.log(executors["Pusher"])


def test_an_unchanged_run_trains_nothing_and_can_be_cancelled(kubeflow, sample):
    process = kubeflow.start("submit", "--wait")
    run_id = next(filter(None, map(run_in, process.stdout)))
    wait(lambda: "ServedModel" in kubeflow.executors(run_id), 900)
    kubeflow.client.terminate_run(run_id)
    lines = process.stdout.read()
    assert process.wait() == 1
    assert " was cancelled" in lines and " failed: " not in lines
    assert kubeflow.executors(run_id).keys() <= NEVER_CACHED


def test_a_training_continues_after_a_cancelled_run(kubeflow, sample):
    long = ("--set", "training.epochs=1000", "--set", "training.checkpoint_steps=5")
    started = {"field_selector": "status.phase!=Pending"}
    for text in ("Checkpoint after step", "Resuming after step"):
        run_id = run_in(kubeflow("submit", *long))
        wait(lambda run_id=run_id: "Trainer" in kubeflow.executors(run_id, **started), 900)
        pod = kubeflow.executors(run_id)["Trainer"]
        wait(lambda pod=pod, text=text: text in kubeflow.log(pod), 900)
        kubeflow.client.terminate_run(run_id)


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        ("tfjob", "parameter_server"),
        ("trainjob", "multi_worker_mirrored"),
        exhaustive("trainjob", "parameter_server"),
        exhaustive("jobset", "multi_worker_mirrored"),
    ],
)
def test_a_training_job_of_the_pipeline_ends_with_a_pushed_model(kubeflow, sample, kind, strategy):
    skip_without(kind_named(kind))
    settings = (f"kubeflow.training_job={kind}", f"training.strategy={strategy}")
    words = [word for each in (*settings, "training.workers=2") for word in ("--set", each)]
    lines = kubeflow("submit", "--wait", *words)
    executors = kubeflow.executors(run_in(lines))
    assert set(executors) == NEVER_CACHED | {"Trainer"}
    log = kubeflow.log(executors["Trainer"])
    assert f"Created {kind_named(kind).title}" in log and "[worker 0]" in log
    assert "Pushed to" in kubeflow.log(executors["Pusher"])


def test_a_failure_names_the_pod_and_its_error(kubeflow):
    empty = f"{kubeflow.config.paths.root}/nothing"
    lines = kubeflow("submit", "--wait", "--set", f"data.input_base={empty}", code=1)
    assert "ReviewExampleGen failed: no error message from the cluster" in lines
    pod = kubeflow.executors(run_in(lines))["ReviewExampleGen"]
    [error] = re.findall(rf"^{pod}: (.+)", lines, re.MULTILINE)
    assert empty in error
    command = lines[lines.index("logs: ") + len("logs: ") :]
    shown = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert error in shown.stdout


@pytest.mark.parametrize("file", ["training.yaml", "serving.yaml", "flink/cluster.yaml"])
def test_the_api_server_accepts_the_objects(core_api, file):
    text = (CHECKOUT / "kubeflow" / file).read_text().replace("NAMESPACE", "default")
    command = ["kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if "ensure CRDs are installed first" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr


def run_in(printed):
    """Return the id in the link that `submit` prints; None: it is not printed yet."""
    link = re.search(r"/#/runs/details/(\S+)", printed)
    return link and link[1]
