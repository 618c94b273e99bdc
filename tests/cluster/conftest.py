"""The cluster of the current kube context, and the settings of a user of it."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import kfp
import pytest
import urllib3
import yaml
from kubernetes.client import CoreV1Api
from kubernetes.client.exceptions import ApiException
from ml_metadata import proto
from ml_metadata.metadata_store import MetadataStore

from core.errors import InputError
from pipeline.config import find_settings, load_config, read_settings
from platforms.kubernetes_api import connect
from tests.cluster.training_ground import Cluster


@pytest.fixture(scope="session")
def core_api():
    """The API server of the current kube context."""
    try:
        api = CoreV1Api(connect())
        api.list_namespace(limit=1, _request_timeout=10)
    except (InputError, ApiException, urllib3.exceptions.HTTPError) as error:
        pytest.skip(f"the kube context has no cluster: {error}")
    return api


@pytest.fixture(scope="session")
def settings_file(core_api):
    """The settings file with the image, the bucket and the endpoint of the cluster."""
    if not os.environ.get("CLUSTER_CONFIG"):
        pytest.skip("CLUSTER_CONFIG is not set; see CONTRIBUTING.md")
    return Path(os.environ["CLUSTER_CONFIG"]).absolute()


@pytest.fixture(scope="session")
def kubeflow(settings_file, core_api, tmp_path_factory):
    """A `KubeflowUser`."""
    return KubeflowUser(settings_file, core_api, tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def cluster(settings_file):
    folder = os.environ.get("CLUSTER_FOLDER")
    if not folder:
        pytest.skip("CLUSTER_FOLDER is not set; see CONTRIBUTING.md")
    with Cluster(Path(folder), load_config(str(settings_file)).cluster.image) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def step_config(cluster):
    """A kube config with the permissions of the guide."""
    return cluster.kube_config("step")


class KubeflowUser:
    """A user of Kubeflow Pipelines with `amazon-reviews`, in an empty folder.

    Attributes:
      config: the settings.
      client: a `kfp.Client`.
    """

    def __init__(self, file, api, folder):
        # A limit that no file reaches: the runs of an earlier session are not in the cache.
        limit = f"data.max_examples.train={10**9 + int(time.time())}"
        self._file, self._api, self._folder, self._common = file, api, folder, ["--set", limit]
        self.config = load_config(str(file))
        self.client = kfp.Client(host=self.config.kubeflow.endpoint)

    def preset(self, name):
        """Return the option for the settings of a preset, with the cluster of this user."""
        values, own = read_settings(find_settings(name)), read_settings(self._file)
        values |= {key: own[key] for key in ("cluster", "kubeflow")}
        folder = f"{self.config.paths.root}/{name}"
        values["paths"] = {"root": folder, "serving": f"{folder}/serving-{int(time.time())}"}
        file = self._folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(values))
        return ["--config", str(file)]

    def start(self, command, *words):
        """Start a command for the cluster; return its process."""
        program = Path(sys.executable).with_name("amazon-reviews")
        target = ["--target", "kubeflow", "--config", self._file, *self._common]
        return subprocess.Popen(
            [program, command, *target, *words],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, command, *words, code=0):
        """Run a command for the cluster; return what it printed."""
        process = self.start(command, *words)
        printed, _ = process.communicate()
        assert process.returncode == code, printed
        return printed

    def pods(self, run_id, **selectors):
        """Return the pods of the run."""
        return self._api.list_namespaced_pod(
            self.config.kubeflow.namespace, label_selector=f"pipeline/runid={run_id}", **selectors
        ).items

    def executors(self, run_id, **selectors):
        """Return task -> the pod that ran it; a task with a cache hit has none."""
        found = {}
        for pod in self.pods(run_id, **selectors):
            name = pod.metadata.annotations["workflows.argoproj.io/node-name"]
            task = re.search(r"\.root\.(\w+)\.executor", name)
            if task:
                found[task[1]] = pod.metadata.name
        return found

    def artifacts(self, run_id):
        """Return the artifacts of the run in ML Metadata, whose URIs end in /TASK/ID/NAME."""
        host = os.environ.get("METADATA_GRPC_SERVICE_HOST", "127.0.0.1")
        port = int(os.environ.get("METADATA_GRPC_SERVICE_PORT", "8082"))
        metadata = MetadataStore(proto.MetadataStoreClientConfig(host=host, port=port))
        context = metadata.get_context_by_type_and_name("system.PipelineRun", run_id)
        return metadata.get_artifacts_by_context(context.id)

    def log(self, pod):
        """Return the log of a step so far."""
        return self._api.read_namespaced_pod_log(
            pod, self.config.kubeflow.namespace, container="main"
        )
