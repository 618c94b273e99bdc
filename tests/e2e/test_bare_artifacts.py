"""The compiled pipeline on a launcher that passes only names and URIs of artifacts."""

import os
import subprocess
import sys

import pytest
import yaml

from serving.signing.model import verified
from tests.e2e.conftest import SETTINGS
from tests.platforms import bare_launcher
from tests.serving.test_signing import write_key

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
        "signing": {"private_key": str(write_key(tmp_path / "signing.pem"))},
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
    with verified(str(pushed), (tmp_path / "signing.pub").read_bytes()) as model:
        assert os.path.isfile(f"{model}/saved_model.pb")
    page = (tmp_path / "root" / "RunReport" / "report").read_text()
    assert f"The model is blessed, and was pushed to {pushed}." in page
