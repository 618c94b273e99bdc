"""The sample pipeline on Apache Flink has the results of the direct runner."""

import re

import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma

from sample_data.generate import render
from tests.e2e.harness import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks, pytest.mark.xdist_group("flink")]

FILES, REVIEWS_PER_FILE = 4, 1500
DUPLICATES = 40


@pytest.fixture
def settings(tmp_path_factory):
    """Return the settings of both runs: several files to divide, and a small training.

    The test file also has reviews of a train file.
    """
    folder = tmp_path_factory.mktemp("reviews")
    texts = [render(seed=number, count=REVIEWS_PER_FILE) for number in range(FILES)]
    texts[-1] += "".join(texts[0].splitlines(keepends=True)[:DUPLICATES])
    for number, text in enumerate(texts):
        (folder / f"part-{number}.ft.txt").write_text(text)
    return {
        "training": {"epochs": 1, "batch_size_per_replica": 128},
        "evaluation": {"min_accuracy": 0.5, "min_class_recall": 0.0},
        "serving_check": {"min_golden": 0.0},
        "data": {
            "input_base": str(folder),
            "splits": {"train": "part-[0-2]*", "test": "part-3*"},
        },
    }


def test_a_run_on_flink_has_the_results_of_the_direct_runner(settings, flink_jars, tmp_path):
    direct = Workspace(tmp_path / "direct", settings)
    beam = {"runner": "flink", "flink": {"jars": str(flink_jars)}}
    workspace = Workspace(tmp_path / "flink", {**settings, "beam": beam})
    duplicates = set()
    for each in (direct, workspace):
        done = each.run()
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(each.pushed()) == 1
        duplicates.add(int(re.search(r"duplicate_across_splits (\d+)", done.stdout)[1]))
    assert len(duplicates) == 1 and min(duplicates) >= DUPLICATES
    found, expected = results(workspace), results(direct)
    for key in ("examples", "features"):
        assert found[key] == expected[key]
    assert len(expected["metrics"]) > 10
    assert found["metrics"] == pytest.approx(expected["metrics"])
    assert scores(workspace, settings) == scores(workspace, settings, "beam.runner=direct")


def scores(workspace, settings, override=""):
    """Return the file that `amazon-reviews predict --input` writes."""
    output = workspace.folder / "scores.csv"
    words = ("--input", settings["data"]["input_base"], "--output", str(output))
    done = workspace.command("predict", *words, overrides=override)
    assert done.returncode == 0, done.stderr
    return output.read_text()


def results(workspace):
    """Return what the Beam components of a run wrote, without the order of the records."""

    def newest(component, output):
        folders = (workspace.root / component / output).iterdir()
        return max(folders, key=lambda folder: int(folder.name))

    evaluation = tfma.load_eval_result(str(newest("Evaluator", "evaluation")))
    return {
        "examples": examples(newest("ReviewExampleGen", "examples")),
        "features": examples(newest("Transform", "transformed_examples")),
        # (slice, metric) -> value.
        "metrics": {
            (key, name): value["doubleValue"]
            for key, outputs in evaluation.slicing_metrics
            for name, value in outputs[""][""].items()
            if "doubleValue" in value
        },
    }


def examples(folder):
    """Return split -> its Examples, sorted."""
    found = {}
    for split in folder.glob("Split-*"):
        records = tf.data.TFRecordDataset([str(f) for f in split.glob("*.gz")], "GZIP")
        parsed = (tf.train.Example.FromString(record.numpy()) for record in records)
        found[split.name] = sorted(e.SerializeToString(deterministic=True) for e in parsed)
    return found
