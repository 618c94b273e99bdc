"""The compiled sample pipeline runs whole, step by step, to the model of the local engine."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from serving.predictor import Predictor
from tests.e2e.conftest import SETTINGS
from tests.kubeflow import run_locally

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("finished")]

TEXTS = ["Great phone: works as it should", "Broke after a day: do not buy", "It is a thing"]
HERE = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}


class Steps:
    """A compiled pipeline in a folder that plays the volume of the cluster."""

    def __init__(self, folder, run):
        self.folder, self._run = folder, run
        self.serving = folder / "serving"
        self.package = folder / "pipeline.yaml"
        settings = {
            **SETTINGS,
            # The run gives the number that the local engine's training has.
            "training": {**SETTINGS["training"], "epochs": 1},
            "paths": {
                # kfp.local is given a root of its own.
                "root": "gs://bucket/root",
                "checkpoints": str(folder / "checkpoints"),
                "serving": str(self.serving),
            },
            "cluster": {"image": "example/amazon-reviews:1"},
            "kubeflow": {"volume": {"claim": "reviews", "mount": str(folder)}},
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(settings))
        # Under the mount, for a container that does not see this checkout.
        self._script = folder / "run_locally.py"
        self._script.write_text(Path(run_locally.__file__).read_text())

    def compile(self):
        words = ["--target", "kubeflow", "--output", str(self.package)]
        self.check("amazon-reviews", "compile", "-c", str(self.folder / "config.yaml"), *words)

    def run(self, *parameters):
        self.check(
            *("python", str(self._script), str(self.package), str(self.folder / "root")),
            *parameters,
        )

    def pushed(self):
        [version] = self.serving.iterdir()
        return version

    def check(self, *command):
        done = self._run(command)
        # The log of a whole pipeline is long; its end tells.
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


def probabilities(model):
    return np.array([answer.probability for answer in Predictor(str(model)).predict(TEXTS)])


@pytest.mark.skipif(importlib.util.find_spec("kfp.local") is None, reason="this kfp has no local")
def test_the_steps_push_the_model_of_the_local_engine(finished, tmp_path):
    def run(command):
        return subprocess.run(command, env=HERE, cwd=tmp_path, capture_output=True, text=True)

    steps = Steps(tmp_path, run)
    steps.compile()
    steps.run("epochs=4")
    workspace, _ = finished
    expected = probabilities(workspace.pushed()[0])
    np.testing.assert_allclose(probabilities(steps.pushed()), expected, atol=1e-5)
