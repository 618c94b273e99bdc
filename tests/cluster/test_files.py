"""The API server of a real cluster accepts the files of the folder `kubeflow`."""

import subprocess

import pytest

from tests.checkout import CHECKOUT

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("file", ["training.yaml", "serving.yaml", "flink/cluster.yaml"])
def test_the_api_server_accepts_the_objects(core_api, file):
    command = ["kubectl", "apply", "--dry-run=server", "--validate=strict", "-f"]
    done = subprocess.run([*command, CHECKOUT / "kubeflow" / file], capture_output=True, text=True)
    if "ensure CRDs are installed first" in done.stderr:
        pytest.skip(f"the cluster has not the CRDs of {file}: {done.stderr}")
    assert done.returncode == 0, done.stderr
