"""The compiled pipeline on a launcher that passes only names and URIs of artifacts."""

import os
import subprocess
import sys

import pytest
import yaml

from tests.e2e.conftest import SETTINGS
from tests.platforms import bare_launcher

pytestmark = pytest.mark.slow


def test_the_steps_push_a_model_without_types_and_properties(tmp_path):
    serving = tmp_path / "serving"
    settings = {
        **SETTINGS,
        "paths": {
            "root": "gs://bucket/root",
            "checkpoints": str(tmp_path / "checkpoints"),
            "serving": str(serving),
        },
        "cluster": {"image": "example/amazon-reviews:1"},
        "kubeflow": {"volume": {"claim": "reviews", "mount": str(tmp_path)}},
    }
    config, package = tmp_path / "settings.yaml", tmp_path / "pipeline.yaml"
    config.write_text(yaml.safe_dump(settings))
    environ = {**os.environ, "PYTHONPATH": os.getcwd(), "TF_CPP_MIN_LOG_LEVEL": "3"}

    def run(*command):
        done = subprocess.run(
            [sys.executable, *command], env=environ, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout

    code = "from cli.app import app; app()"
    run(*("-c", code, "compile", "--target", "kubeflow"), *("-c", config, "--output", package))
    output = run(bare_launcher.__file__, package, tmp_path / "root")
    assert "RunReport: exit code 0" in output
    [pushed] = serving.iterdir()
    assert (pushed / "saved_model.pb").is_file()
    page = (tmp_path / "root" / "RunReport" / "report").read_text()
    assert f"The model is blessed, and was pushed to {pushed}." in page
