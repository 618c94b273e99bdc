"""The API server of a real cluster accepts the files of the folder `kubeflow`."""

import subprocess

import pytest

from tests.checkout import CHECKOUT

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("file", ["training.yaml", "serving.yaml", "flink/cluster.yaml"])
def test_the_api_server_accepts_the_objects(core_api, file):
    text = (CHECKOUT / "kubeflow" / file).read_text().replace("NAMESPACE", "default")
    command = ["kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if "ensure CRDs are installed first" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
