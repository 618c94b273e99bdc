"""The compiled pipeline on a launcher that passes only names and URIs of artifacts.

This launcher also works with versions of kfp that cannot run pipelines.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.checkout import SLOW_SECONDS, checkout_with_a_slow_model
from tests.e2e.conftest import SETTINGS, compiled_settings
from tests.platforms import bare_launcher

pytestmark = pytest.mark.slow

THRESHOLD = SLOW_SECONDS * 1000 - 10


class Steps:
    """The steps of the sample pipeline with the model `slow`, and a folder for their outputs."""

    def __init__(self, folder, checkout):
        self._folder, self._root, self._serving = folder, folder / "root", folder / "serving"
        self._package = folder / "pipeline.yaml"
        self._environ = {**os.environ, "PYTHONPATH": str(checkout), "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._settings = {
            **compiled_settings(folder),
            "training": {**SETTINGS["training"], "model": "slow"},
            "data": {"max_examples": {"train": 8000, "eval": 500, "test": 500}},
        }

    def compile(self, max_p99_ms):
        """Compile the pipeline with a threshold of the serving check."""
        config = self._folder / "settings.yaml"
        settings = {**self._settings, "serving_check": {"max_p99_ms": max_p99_ms}}
        config.write_text(yaml.safe_dump(settings))
        code = "from cli.app import app; app()"
        words = ("compile", "--target", "kubeflow", "-c", config, "--output", self._package)
        self._run("-c", code, *words)

    def change_threshold(self, max_p99_ms):
        """Change the threshold in the compiled pipeline, because compiling takes longer."""
        document = next(yaml.safe_load_all(self._package.read_text()))
        check = document["root"]["dag"]["tasks"]["ServingCheck"]["inputs"]["parameters"]
        value = check["settings"]["runtimeValue"]
        settings = json.loads(value["constant"])
        assert "max_p99_ms" in settings
        value["constant"] = json.dumps({**settings, "max_p99_ms": max_p99_ms})
        self._package.write_text(yaml.safe_dump(document))

    def run(self):
        """Run the steps that have no output; return the pushed models."""
        output = self._run(bare_launcher.__file__, self._package, self._root)
        assert "RunReport: exit code 0" in output
        return list(self._serving.iterdir()) if self._serving.exists() else []

    def remove(self, *names):
        """Remove the outputs of steps."""
        for name in names:
            shutil.rmtree(self._root / name)

    def check(self):
        """Return the results of the serving check."""
        return json.loads((self._root / "ServingCheck" / "blessing" / "check.json").read_text())

    def report(self):
        """Return the page of the report, and the metadata of each output of its step."""
        step = self._root / "RunReport"
        outputs = json.loads((step / "executor_output.json").read_text())["artifacts"]
        metadata = {name: given["artifacts"][0]["metadata"] for name, given in outputs.items()}
        return (step / "report").read_text(), metadata

    def _run(self, *command):
        done = subprocess.run(
            [sys.executable, *command],
            env=self._environ,
            cwd=self._folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout


def test_the_steps_refuse_a_slow_model_and_push_it_if_the_threshold_allows_it(tmp_path):
    folder = tmp_path / "steps"
    folder.mkdir()
    steps = Steps(folder, checkout_with_a_slow_model(tmp_path / "checkout"))
    steps.compile(THRESHOLD)
    assert steps.run() == []
    check = steps.check()
    assert not check["passed"]
    assert check["cause"].endswith(f" ms, serving_check.max_p99_ms allows {THRESHOLD:g}")
    assert [result["name"] for result in check["results"] if not result["passed"]] == ["p99_ms"]
    page, metadata = steps.report()
    assert "The model is blessed, but failed the serving check. It was not pushed." in page
    assert metadata["metrics"]["accuracy"] > 0.85
    assert metadata["classification"].keys() >= {"confusionMatrix", "confidenceMetrics"}

    steps.remove("ServingCheck", "Pusher", "RunReport")
    steps.change_threshold(100_000.0)
    [pushed] = steps.run()
    assert steps.check()["passed"]
    assert (pushed / "saved_model.pb").is_file()
    assert f"The model is blessed, and was pushed to {pushed}." in steps.report()[0]
