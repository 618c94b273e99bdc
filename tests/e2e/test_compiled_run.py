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

from pipeline.config import load_config
from platforms.compile import compile_pipeline
from tests.e2e.conftest import SETTINGS, compiled_settings
from tests.e2e.mlflow_server import values
from tests.platforms import bare_launcher, run_locally
from tests.platforms.image_machine import built_image, run_in_image

pytestmark = pytest.mark.slow

EPOCHS = SETTINGS["training"]["epochs"]
TEXTS = ["Great phone: works as it should", "Broke after a day: do not buy", "It is a thing"]
# Prints the predictions of models, with the version of TensorFlow that wrote them.
ASK = """
import json, sys
from serving.predict_text import load_predict_text
texts, *folders = map(json.loads, sys.argv[1:])
texts = [text.encode() for text in texts]
print(json.dumps([load_predict_text(f)(texts)["probability"].tolist() for f in folders]))
"""


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
        assert metadata["metrics"]["accuracy"] > 0.85
        assert metadata["classification"].keys() >= {"confusionMatrix", "confidenceMetrics"}
        return page.read_text()

    def answers(self, *models):
        folders = [json.dumps(str(model)) for model in models]
        printed = self.run("python", "-c", ASK, json.dumps(TEXTS), *folders)
        return [np.array(answer) for answer in json.loads(printed.splitlines()[-1])]

    def run(self, *command):
        done = self._run(command)
        # The log of a whole pipeline is long, and the error is at its end.
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout


@pytest.fixture
def same_model(finished):
    """A function that fails if a model does not answer like that of the local engine."""

    def check(steps, pushed):
        answer, expected = steps.answers(pushed, finished[0].pushed()[0])
        np.testing.assert_allclose(answer, expected, atol=1e-5)

    return check


@pytest.mark.xdist_group("finished")
def test_names_and_uris_of_artifacts_are_all_that_the_steps_need(
    same_model, mlflow_server, tmp_path
):
    """A launcher that passes nothing else."""
    tracking = {"mlflow": mlflow_server.uri}
    steps = Steps(tmp_path, bare_launcher, name="compiled", tracking=tracking)
    [pushed], check = steps.launch()
    assert check["passed"], check["cause"]
    assert f"The model is blessed, and was pushed to {pushed}." in steps.report()
    [run] = mlflow_server.runs(name="compiled")
    tags = values(run["data"]["tags"])
    assert (tags["result"], tags["platform"]) == ("pushed", "kubeflow")
    same_model(steps, pushed)


@pytest.mark.both_stacks
@pytest.mark.xdist_group("finished")
@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="kfp 2.5, the version for this Python, runs no pipelines"
)
def test_kubeflow_pipelines_runs_the_steps_with_a_parameter(same_model, tmp_path):
    training = {**SETTINGS["training"], "epochs": EPOCHS - 1}
    steps = Steps(tmp_path, run_locally, training=training)
    [pushed], check = steps.launch(f"epochs={EPOCHS}")
    assert (check["passed"], check["cause"]) == (True, "")
    # The parameter of the run has replaced the setting of the compiled pipeline.
    assert re.search(rf"training\.epochs</th><td[^>]*>{EPOCHS}</td>", steps.report())
    same_model(steps, pushed)


@pytest.mark.exhaustive
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
    local = tmp_path / "local"
    (tmp_path / "local.yaml").write_text(
        yaml.safe_dump({**SETTINGS, "paths": {"root": str(local)}})
    )
    steps.run("sh", "-c", f"cd {tmp_path} && amazon-reviews run -c {tmp_path}/local.yaml")
    [expected] = (local / "serving").iterdir()
    answer, expected = steps.answers(pushed, expected)
    np.testing.assert_allclose(answer, expected, atol=1e-5)
