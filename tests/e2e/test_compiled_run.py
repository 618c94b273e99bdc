"""The compiled sample pipeline runs step by step, and pushes the same model as the local engine. It
refuses a model that is made slow on purpose."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.checkout import SLOW_SECONDS, checkout_with_a_slow_model
from tests.e2e.conftest import SETTINGS, compiled_settings
from tests.platforms import run_locally
from tests.platforms.image_machine import built_image, run_in_image

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]

TEXTS = ["Great phone: works as it should", "Broke after a day: do not buy", "It is a thing"]
# Prints the predictions of models, with the version of TensorFlow that wrote them.
ASK = """
import json, sys
from serving.predictor import Predictor
texts, *folders = map(json.loads, sys.argv[1:])
texts = [text.encode() for text in texts]
print(json.dumps([[a.probability for a in Predictor(f).predict(texts)] for f in folders]))
"""


class Steps:
    """A compiled pipeline in a folder that takes the place of the cluster's volume."""

    def __init__(self, folder, run, **sections):
        self.folder, self._run = folder, run
        self.serving = folder / "serving"
        self._package = folder / "pipeline.yaml"
        self._write("local.yaml", SETTINGS)
        # The parameter `epochs` of the run overrides this value.
        training = {**SETTINGS["training"], "epochs": 1, **sections.pop("training", {})}
        compiled = {**compiled_settings(folder), "training": training, **sections}
        self._write("compiled.yaml", compiled)
        # Under the mount, because a container has no access to this checkout.
        (folder / "run_locally.py").write_text(Path(run_locally.__file__).read_text())

    def compile_and_run(self):
        """Return the folders of the pushed models, and the content of check.json."""
        config, package = str(self.folder / "compiled.yaml"), str(self._package)
        self.run(
            *("amazon-reviews", "compile", "--target", "kubeflow"),
            *("-c", config, "--output", package),
        )
        script, root = str(self.folder / "run_locally.py"), str(self.folder / "root")
        self.run("python", script, package, root, f"epochs={SETTINGS['training']['epochs']}")
        [check] = (self.folder / "root").rglob("check.json")
        pushed = list(self.serving.iterdir()) if self.serving.exists() else []
        return pushed, json.loads(check.read_text())

    def report(self):
        """Return the page of RunReport, and the metadata of each output of its step."""
        [page] = [file for file in (self.folder / "root").rglob("report") if file.is_file()]
        outputs = json.loads((page.parent / "executor_output.json").read_text())["artifacts"]
        metadata = {name: given["artifacts"][0]["metadata"] for name, given in outputs.items()}
        return page.read_text(), metadata

    def answers(self, *models):
        folders = [json.dumps(str(model)) for model in models]
        printed = self.run("python", "-c", ASK, json.dumps(TEXTS), *folders)
        return [np.array(answer) for answer in json.loads(printed.splitlines()[-1])]

    def run(self, *command):
        done = self._run(command)
        # The log of a whole pipeline is long, and the error is at its end.
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout

    def _write(self, name, settings):
        (self.folder / name).write_text(yaml.safe_dump(settings))


runs_pipelines = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="kfp 2.5, the version for this Python, runs no pipelines"
)


def as_processes(checkout, folder):
    """Return a function that runs a command with the code of a checkout."""
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": str(checkout)}

    def run(command):
        return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True)

    return run


@pytest.mark.xdist_group("finished")
@runs_pipelines
def test_the_steps_push_the_model_of_the_local_engine(finished, tmp_path):
    steps = Steps(tmp_path, as_processes(os.getcwd(), tmp_path))
    [pushed], check = steps.compile_and_run()
    assert (check["passed"], check["cause"]) == (True, "")
    page, metadata = steps.report()
    assert f"The model is blessed, and was pushed to {pushed}." in page
    # The parameter of the run has replaced the setting of the compiled pipeline.
    assert re.search(rf"training\.epochs</th><td[^>]*>{SETTINGS['training']['epochs']}</td>", page)
    assert metadata["metrics"]["accuracy"] > 0.9
    assert metadata["classification"].keys() >= {"confusionMatrix", "confidenceMetrics"}
    workspace, _ = finished
    answer, expected = steps.answers(pushed, workspace.pushed()[0])
    np.testing.assert_allclose(answer, expected, atol=1e-5)


@pytest.mark.exhaustive
@runs_pipelines
def test_the_steps_refuse_a_model_that_is_made_slow(tmp_path):
    checkout = checkout_with_a_slow_model(tmp_path / "checkout")
    folder = tmp_path / "steps"
    folder.mkdir()
    threshold = SLOW_SECONDS * 1000 - 10
    steps = Steps(
        folder,
        as_processes(checkout, folder),
        training={"model": "slow"},
        data={"max_examples": {"train": 20_000, "eval": 1000, "test": 1000}},
        serving={"max_p99_ms": threshold},
    )
    pushed, check = steps.compile_and_run()
    assert pushed == []
    assert not check["passed"]
    assert (
        "The model is blessed, but failed the serving check. It was not pushed."
        in steps.report()[0]
    )
    assert check["cause"].endswith(f" ms, serving_check.max_p99_ms allows {threshold:g}")
    results = {result["name"]: result for result in check["results"]}
    assert [name for name, result in results.items() if not result["passed"]] == ["p99_ms"]
    assert results["golden"]["value"] > results["golden"]["threshold"]


@pytest.mark.xdist_group("image")
@pytest.mark.timeout(2400)  # the first call builds the image
def test_the_steps_run_in_the_image(tmp_path):
    """The container is that of a restricted pod: it can write to /tmp and to the folder only."""
    image = built_image()
    tmp_path.chmod(0o777)  # for the image's user

    def run(command):
        return run_in_image(image, command, {tmp_path: tmp_path}, timeout=900)

    steps = Steps(tmp_path, run)
    [pushed], check = steps.compile_and_run()
    assert check["passed"], check["cause"]
    local = tmp_path / "local"
    change = f"cd {tmp_path} && PIPELINE_SET=paths.root={local}"
    steps.run("sh", "-c", f"{change} amazon-reviews run -c {tmp_path}/local.yaml")
    [expected] = (local / "serving").iterdir()
    answer, expected = steps.answers(pushed, expected)
    np.testing.assert_allclose(answer, expected, atol=1e-5)
