"""The compiled pipeline on a real Kubeflow Pipelines, with the commands of the guide."""

import os
import re
import subprocess

import pytest
from ml_metadata import proto
from ml_metadata.metadata_store import MetadataStore

from tests.cluster.conftest import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]

CACHED = {"ReviewExampleGen", "SchemaGen", "StatisticsGen", "ExampleValidator"}
CACHED |= {"DataGate", "Transform"}
NEVER_CACHED = {"LatestBlessedModel", "Evaluator", "ServingCheck", "Pusher", "RunReport"}


@pytest.fixture(scope="module")
def sample(kubeflow):
    """The lines about the run of the sample pipeline, and the run."""
    return kubeflow("submit", "--wait"), kubeflow.newest()


@pytest.fixture(scope="module")
def metadata():
    """ML Metadata, from which the pages of Kubeflow get the artifacts."""
    host = os.environ.get("METADATA_GRPC_SERVICE_HOST", "127.0.0.1")
    port = int(os.environ.get("METADATA_GRPC_SERVICE_PORT", "8082"))
    return MetadataStore(proto.MetadataStoreClientConfig(host=host, port=port))


def test_the_sample_pipeline_ends_with_a_pushed_model(kubeflow, sample):
    lines, run = sample
    assert f"{run.display_name} succeeded after" in lines
    executors = kubeflow.executors(run.run_id)
    assert set(executors) == CACHED | NEVER_CACHED | {"Trainer"}
    assert "Model pushed" in kubeflow.log(executors["Pusher"])


@pytest.mark.parametrize(
    ("name", "type_", "keys"),
    [
        ("metrics", "system.Metrics", {"accuracy", "auc"}),
        ("classification", "system.ClassificationMetrics", {"confusionMatrix"}),
        ("report", "system.HTML", set()),
    ],
)
def test_the_pages_of_kubeflow_get_the_results(sample, metadata, name, type_, keys):
    [context] = [
        each
        for each in metadata.get_contexts_by_type("system.PipelineRun")
        if each.name == sample[1].run_id
    ]
    artifacts = metadata.get_artifacts_by_context(context.id)
    [found] = [each for each in artifacts if each.type == type_]
    assert found.uri.startswith("gs://") and found.uri.endswith(name)
    assert keys <= found.custom_properties.keys()


def test_a_parameter_and_the_cache_and_the_volume(kubeflow, sample):
    volume = kubeflow.config.kubeflow.volume
    serving = f"paths.serving={volume.mount}/serving"
    kubeflow("submit", "--wait", "--parameter", "epochs=1", "--set", serving)
    executors = kubeflow.executors(kubeflow.newest().run_id)
    assert set(executors) == NEVER_CACHED | {"Trainer"}
    assert "Epoch 1/1" in kubeflow.log(executors["Trainer"])
    assert f"{volume.mount}/serving/" in kubeflow.log(executors["Pusher"])


def test_an_unchanged_run_trains_nothing_and_can_be_cancelled(kubeflow, sample):
    process = kubeflow.start("submit", "--wait")
    run = wait_for(lambda: other_run(kubeflow, sample[1]))
    wait_for(lambda: "Evaluator" in kubeflow.executors(run.run_id))
    kubeflow.client.terminate_run(run.run_id)
    lines, _ = process.communicate()
    assert process.returncode == 1
    assert f"{run.display_name} was cancelled" in lines
    assert "no error message" not in lines
    assert not set(kubeflow.executors(run.run_id)) & (CACHED | {"Trainer"})


def test_a_training_continues_after_a_cancelled_run(kubeflow, sample):
    long = ("--set", "training.epochs=1000", "--set", "training.checkpoint_steps=5")
    kubeflow("submit", *long)
    run = kubeflow.newest()
    kubeflow.wait_for_log(run.run_id, "Trainer", "Checkpoint after step")
    kubeflow.client.terminate_run(run.run_id)
    kubeflow("submit", *long)
    run = kubeflow.newest()
    kubeflow.wait_for_log(run.run_id, "Trainer", "Resuming after step")
    kubeflow.client.terminate_run(run.run_id)


def test_a_failure_names_the_pod_and_its_error(kubeflow):
    empty = f"{kubeflow.config.paths.root}/nothing"
    lines = kubeflow("submit", "--wait", "--parameter", f"input_base={empty}", code=1)
    assert "ReviewExampleGen failed: no error message from the cluster" in lines
    pod = kubeflow.executors(kubeflow.newest().run_id)["ReviewExampleGen"]
    [error] = re.findall(rf"^{pod}: (.+)", lines, re.MULTILINE)
    assert empty in error
    command = lines[lines.index("logs: ") + len("logs: ") :]
    shown = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert error in shown.stdout


def test_the_first_step_refuses_the_parameters_of_a_run_from_the_ui(kubeflow):
    kubeflow("compile")
    client, file = kubeflow.client, kubeflow.folder / "amazon_reviews.yaml"
    uploaded = client.upload_pipeline(str(file), f"amazon-reviews-{kubeflow.folder.name}")
    [version] = client.list_pipeline_versions(uploaded.pipeline_id).pipeline_versions
    run = client.run_pipeline(
        kubeflow.experiment,
        "from the UI",
        params={"epochs": 2.5},
        pipeline_id=uploaded.pipeline_id,
        version_id=version.pipeline_version_id,
        pipeline_root=kubeflow.config.paths.root,
    )
    assert client.wait_for_run_completion(run.run_id, 900).state == "FAILED"
    executors = kubeflow.executors(run.run_id)
    assert set(executors) <= {"ReviewExampleGen", "LatestBlessedModel"}
    assert "epochs: must be an integer, not 2.5" in kubeflow.log(executors["ReviewExampleGen"])


def test_a_schedule_is_not_deleted_while_its_run_is_in_progress(kubeflow):
    name = kubeflow("submit", "--schedule", "* * * * *").split()[1].rstrip(":")
    assert f"{name}  * * * * *  enabled" in kubeflow("submit", "--schedules")
    run = wait_for(lambda: run_of(kubeflow, name))
    refused = kubeflow("submit", "--delete-schedule", name, code=1)
    assert f"its run {run.display_name} ({run.run_id})" in refused
    assert kubeflow.client.get_run(run.run_id).state == "RUNNING"
    assert f"{name}  * * * * *  disabled" in kubeflow("submit", "--schedules")
    kubeflow.client.terminate_run(run.run_id)
    wait_for(lambda: kubeflow.client.get_run(run.run_id).state == "FAILED")
    assert kubeflow("submit", "--delete-schedule", name) == f"deleted {name}\n"
    assert name not in kubeflow("submit", "--schedules")


def other_run(kubeflow, than):
    """Return the newest run if it is another one."""
    run = kubeflow.newest()
    return run if run.run_id != than.run_id else None


def run_of(kubeflow, schedule):
    """Return the run of a schedule that is in progress."""
    run = kubeflow.newest()
    return run if run.recurring_run_id and run.state == "RUNNING" else None
