"""The sample pipeline on Apache Flink has the results of the direct runner, whatever dies."""

import contextlib
import os
import signal

import psutil
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf.json_format import MessageToDict
from tensorflow_metadata.proto.v0.statistics_pb2 import DatasetFeatureStatisticsList

from platforms.flink import rest
from sample_data.generate import render
from tests.e2e.harness import Workspace
from tests.e2e.test_tfx_cli import CREATE, RUN, tfx
from tests.waiting import wait
from tools.flink_cluster import FlinkCluster

# One process, because the tests share the run of the direct runner.
pytestmark = [pytest.mark.slow, pytest.mark.both_stacks, pytest.mark.xdist_group("flink")]

FILES, REVIEWS_PER_FILE = 4, 1500
JOB_SERVER = "org.apache.beam.runners.flink.FlinkJobServerDriver"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Return the settings of every run here: several files to divide, and a small training."""
    folder = tmp_path_factory.mktemp("reviews")
    for number in range(FILES):
        text = render(seed=number, count=REVIEWS_PER_FILE)
        (folder / f"part-{number}.ft.txt").write_text(text)
    return {
        "training": {"epochs": 1, "batch_size_per_replica": 128},
        "evaluation": {"min_accuracy": 0.5, "min_class_recall": 0.0},
        "serving_check": {"min_golden": 0.0},
        # All Examples, through Beam.
        "data": {"input_base": str(folder), "statistics_examples": None},
    }


@pytest.fixture(scope="module")
def direct(settings, tmp_path_factory):
    """Return the results of a run on the direct runner."""
    workspace = Workspace(tmp_path_factory.mktemp("direct"), settings)
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    return results(workspace)


def on_flink(settings, jars, **flink):
    return {**settings, "beam": {"runner": "flink", "flink": {"jars": str(jars), **flink}}}


def test_a_run_on_flink_has_the_results_of_the_direct_runner(
    settings, direct, flink_jars, tmp_path
):
    workspace = Workspace(tmp_path, on_flink(settings, flink_jars))
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(workspace.pushed()) == 1
    assert_same(results(workspace), direct)
    assert scores(workspace, settings) == scores(workspace, settings, "beam.runner=direct")
    assert processes_of(workspace) == []


@pytest.mark.exhaustive
def test_the_loss_of_the_job_server_ends_the_run_and_the_next_one_completes_it(
    settings, direct, flink_jars, tmp_path
):
    workspace = Workspace(tmp_path, on_flink(settings, flink_jars))
    run = workspace.start()
    wait(lambda: started(workspace, "Transform") or ended(run), 300)
    # The job server starts Flink for each job.
    [log] = (workspace.root / "logs").glob("flink-job-server-*.log")
    flinks = log.read_text().count("Rest endpoint listening")
    wait(lambda: log.read_text().count("Rest endpoint listening") > flinks or ended(run), 300)
    os.kill(descendants(run.pid, JOB_SERVER)[-1], signal.SIGKILL)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 1, output
    assert "failed: Transform: the Flink job server ended before the job" in output
    assert "Traceback" not in output
    assert workspace.pushed() == []
    # What the job had written is no artifact.
    assert "Examples" in workspace.artifacts()
    assert "TransformGraph" not in workspace.artifacts()

    for words in (CREATE, RUN):
        done = tfx(workspace, *words)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert workspace.executions()["CACHED"] > 0
    assert workspace.artifacts()["Examples"] == 2
    assert len(workspace.pushed()) == 1
    assert_same(results(workspace), direct)
    assert processes_of(workspace) == []


@pytest.mark.exhaustive
def test_the_loss_of_a_task_manager_restarts_the_job(settings, direct, flink_jars, tmp_path):
    with FlinkCluster(flink_jars, tmp_path / "cluster") as cluster:
        flink = {"master": cluster.address, "worker_pool": cluster.worker_pool}
        workspace = Workspace(tmp_path / "work", on_flink(settings, flink_jars, **flink))
        run = workspace.start()
        wait(lambda: started(workspace, "Transform") or ended(run), 300)
        pool = cluster.worker_pools[0].pid
        # The fork server, and a worker that it has forked.
        wait(lambda: len(descendants(pool, "forkserver")) > 1 or ended(run), 300)
        os.kill(descendants(cluster.task_managers[0].pid, "TaskManagerRunner")[-1], signal.SIGKILL)
        cluster.add_task_manager()
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
        jobs = rest.get(cluster.address, "/jobs/overview")["jobs"]
        assert {job["state"] for job in jobs} == {"FINISHED"}
        details = [rest.get(cluster.address, f"/jobs/{job['jid']}") for job in jobs]
        assert len([each for each in details if each["timestamps"]["RESTARTING"]]) == 1
        assert_same(results(workspace), direct)
    assert processes_of(workspace) == []


def scores(workspace, settings, override=""):
    """Return the file that `amazon-reviews predict --input` writes."""
    output = workspace.folder / "scores.csv"
    words = ("--input", settings["data"]["input_base"], "--output", str(output))
    done = workspace.command("predict", *words, overrides=override)
    assert done.returncode == 0, done.stderr
    return output.read_text()


def started(workspace, component):
    return (workspace.root / component).exists()


def ended(run):
    """Fail with the output of a run that has ended too early."""
    assert run.poll() is None, run.communicate()[0]


def descendants(pid, word):
    """Return the pids of the processes below `pid` with a word in their command line."""
    with contextlib.suppress(psutil.NoSuchProcess):
        below = psutil.Process(pid).children(recursive=True)
        return [each.pid for each in below if word in command_line(each)]
    return []


def processes_of(workspace):
    """Return the command lines that name the folder of a workspace."""
    lines = [command_line(each) for each in psutil.process_iter()]
    return [line for line in lines if str(workspace.folder) in line]


def command_line(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def results(workspace):
    """Return what the Beam components of a run wrote, without the order of the records."""

    def newest(component, output):
        folders = (workspace.root / component / output).iterdir()
        return max(folders, key=lambda folder: int(folder.name))

    statistics = {}
    for file in newest("StatisticsGen", "statistics").glob("*/FeatureStats.pb"):
        datasets = DatasetFeatureStatisticsList.FromString(file.read_bytes())
        for dataset in datasets.datasets:
            # Their order is that in which Beam combines them.
            dataset.features.sort(key=lambda feature: feature.path.step[0])
        statistics[file.parent.name] = MessageToDict(datasets)
    evaluation = tfma.load_eval_result(str(newest("Evaluator", "evaluation")))
    return {
        "examples": examples(newest("ReviewExampleGen", "examples")),
        "features": examples(newest("Transform", "transformed_examples")),
        "statistics": statistics,
        "metrics": metrics(evaluation),
    }


def examples(folder):
    """Return split -> its Examples, sorted."""
    found = {}
    for split in folder.glob("Split-*"):
        records = tf.data.TFRecordDataset([str(f) for f in split.glob("*.gz")], "GZIP")
        parsed = (tf.train.Example.FromString(record.numpy()) for record in records)
        found[split.name] = sorted(e.SerializeToString(deterministic=True) for e in parsed)
    return found


def metrics(evaluation):
    """Return (slice, metric) -> value."""
    return {
        (key, name): value["doubleValue"]
        for key, outputs in evaluation.slicing_metrics
        for name, value in outputs[""][""].items()
        if "doubleValue" in value
    }


def assert_same(found, expected):
    assert found["examples"] == expected["examples"]
    assert found["features"] == expected["features"]
    assert found["statistics"] == expected["statistics"]
    assert len(expected["metrics"]) > 10
    assert found["metrics"] == pytest.approx(expected["metrics"])
