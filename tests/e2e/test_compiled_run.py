"""The compiled sample pipeline runs step by step, and pushes the same model as the local engine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from pipeline.config import PRESETS, load_config
from platforms.compile import compile_pipeline
from serving.predict_text import load_predict_text
from tests.e2e.conftest import SETTINGS, compiled_settings
from tests.e2e.mlflow_server import values
from tests.platforms import bare_launcher, run_locally
from tests.platforms.image_machine import built_image, run_in_image

pytestmark = pytest.mark.slow

EPOCHS = SETTINGS["training"]["epochs"]
TEXTS = [b"Great phone: works as it should", b"Broke after a day: do not buy", b"It is a thing"]


def as_process(command):
    """Run a command with the code of this checkout and the programs of its environment."""
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": os.getcwd(), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(command, env=environ, capture_output=True, text=True)


class Steps:
    """A compiled pipeline in a folder that takes the place of the cluster's volume."""

    def __init__(self, folder, launcher, run=as_process, **sections):
        self.folder, self._run = folder, run
        self.root, self.package = folder / "root", folder / "pipeline.yaml"
        # Under the mount, because a container has no access to this checkout.
        self._launcher = folder / "launcher.py"
        self._launcher.write_text(Path(launcher.__file__).read_text())
        settings = {**compiled_settings(folder), **sections}
        file = folder / "compiled.yaml"
        file.write_text(yaml.safe_dump(settings))
        if run is as_process:
            compile_pipeline(load_config(str(file), environ={}), "kubeflow", self.package)
        else:
            words = ("--target", "kubeflow", "-c", str(file), "--output", str(self.package))
            self.run("amazon-reviews", "compile", *words)

    def launch(self, *values):
        """Run the steps; return the folders of the pushed models, and the content of check.json."""
        self.run("python", str(self._launcher), str(self.package), str(self.root), *values)
        [check] = self.root.rglob("check.json")
        serving = self.folder / "serving"
        pushed = list(serving.iterdir()) if serving.exists() else []
        return pushed, json.loads(check.read_text())

    def report(self):
        """Return the page of RunReport, and the metadata of each output of its step."""
        [page] = [file for file in self.root.rglob("report") if file.is_file()]
        outputs = json.loads((page.parent / "executor_output.json").read_text())["artifacts"]
        metadata = {name: given["artifacts"][0]["metadata"] for name, given in outputs.items()}
        return page.read_text(), metadata

    def run(self, *command):
        done = self._run(command)
        # The log of a whole pipeline is long, and the error is at its end.
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


def answers_like(pushed, finished):
    """Return whether a model answers like that of the local engine."""
    models = (pushed, finished[0].pushed()[0])
    one, other = (load_predict_text(str(model))(TEXTS)["probability"] for model in models)
    return np.allclose(one, other, rtol=0, atol=1e-5)


@pytest.mark.xdist_group("finished")
def test_names_and_uris_of_artifacts_and_parameters_are_all_that_the_steps_need(
    finished, mlflow_server, tmp_path
):
    """A launcher that passes nothing else, and parameters that differ from the compiled ones."""
    compiled = {
        "tracking": {"mlflow": mlflow_server.uri},
        "training": {**SETTINGS["training"], "epochs": EPOCHS - 1},
        # No model reaches it.
        "evaluation": {**SETTINGS.get("evaluation", {}), "min_accuracy": 1.0},
    }
    steps = Steps(tmp_path, bare_launcher, name="compiled", **compiled)
    [pushed], check = steps.launch(f"epochs={EPOCHS}", "min_accuracy=0.8")
    assert check["passed"], check["cause"]
    page, metadata = steps.report()
    assert metadata["metrics"]["accuracy"] > 0.85
    assert metadata["classification"].keys() >= {"confusionMatrix", "confidenceMetrics"}
    assert "The model is blessed and was pushed." in page
    assert f">{pushed}</span>" in page
    assert re.search(rf"training\.epochs</th><td[^>]*>{EPOCHS}</td>", page)
    assert "evaluation.min_accuracy requires 0.8" in page
    [run] = mlflow_server.runs(name="compiled")
    tags = values(run["data"]["tags"])
    assert (tags["result"], tags["platform"]) == ("pushed", "kubeflow")
    assert answers_like(pushed, finished)


@pytest.mark.both_stacks
@pytest.mark.xdist_group("finished")
@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="kfp 2.5, the version for this Python, runs no pipelines"
)
def test_kubeflow_pipelines_runs_the_steps_with_a_parameter(finished, tmp_path):
    training = {**SETTINGS["training"], "epochs": EPOCHS - 1}
    steps = Steps(tmp_path, run_locally, training=training)
    [pushed], check = steps.launch(f"epochs={EPOCHS}")
    assert (check["passed"], check["cause"]) == (True, "")
    # The parameter of the run has replaced the setting of the compiled pipeline.
    assert re.search(rf"training\.epochs</th><td[^>]*>{EPOCHS}</td>", steps.report()[0])
    assert answers_like(pushed, finished)


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.xdist_group("image")
@pytest.mark.timeout(2400)  # the first call builds the image
def test_the_steps_run_in_the_image(tmp_path):
    """The container is that of a restricted pod: it can write to /tmp and to the folder only."""
    image = built_image()
    tmp_path.chmod(0o777)  # for the image's user

    def run(command):
        return run_in_image(image, command, tmp_path, seconds=900)

    steps = Steps(tmp_path, run_locally, run)
    [pushed], check = steps.launch()
    assert check["passed"], check["cause"]
    assert (pushed / "saved_model.pb").is_file()


@pytest.mark.exhaustive
@pytest.mark.xdist_group("mlflow")
def test_five_ordered_classes_reach_the_page_of_the_cluster_and_mlflow(mlflow_server, tmp_path):
    preset = yaml.safe_load((PRESETS / "stars.yaml").read_text(encoding="utf-8"))
    sections = {name: preset[name] for name in ("data", "transform", "training", "evaluation")}
    tracking = {"mlflow": mlflow_server.uri}
    steps = Steps(tmp_path, bare_launcher, name="stars", tracking=tracking, **sections)
    [pushed], check = steps.launch()
    assert check["passed"], check["cause"]
    page, metadata = steps.report()
    assert "The model is blessed and was pushed." in page
    matrix = metadata["classification"]["confusionMatrix"]
    assert [each["displayName"] for each in matrix["annotationSpecs"]] == list("12345")
    [run] = mlflow_server.runs(name="stars")
    sent = values(run["data"]["metrics"])
    for name in ("accuracy", "mean absolute error"):
        assert sent[name] == metadata["metrics"][name]
    assert 0.65 < sent["accuracy"] < 0.95
    answers = load_predict_text(str(pushed))([b"simply perfect", b"total rubbish, avoid it"])
    assert answers["class"].tolist() == [b"5", b"1"]
