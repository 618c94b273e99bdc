"""Submissions to Kubeflow Pipelines and to Vertex AI, each with a server of its own."""

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1.services.pipeline_service import PipelineServiceClient

from platforms.kubeflow import client as kubeflow_client
from platforms.vertex import client as vertex_client
from tests.platforms.kubeflow.kfp_server import KfpServer, VertexServer, serving
from tests.platforms.submission import Submission


@pytest.fixture
def at_once(monkeypatch, tmp_path):
    """Shorten the pauses between retries, and ignore the clusters that this machine knows."""
    monkeypatch.setattr(kubeflow_client, "PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(vertex_client, "RETRY_SECONDS", 5.0)
    monkeypatch.setattr("kfp.Client._LOCAL_KFP_CONTEXT", str(tmp_path / "context.json"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kube.yaml"))
    for name in ("KF_PIPELINES_SA_TOKEN_PATH", "KF_PIPELINES_UI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kubeflow(at_once, tmp_path):
    with serving(KfpServer([{"state": "SUCCEEDED"}])) as server:
        yield Submission("kubeflow", server, tmp_path)


@pytest.fixture
def vertex(at_once, tmp_path, monkeypatch):
    with serving(VertexServer([{"state": "PIPELINE_STATE_SUCCEEDED"}])) as server:

        def connect(config, service=PipelineServiceClient):
            return service(
                credentials=AnonymousCredentials(),
                transport="rest",
                client_options={"api_endpoint": server.url},
            )

        monkeypatch.setattr(vertex_client, "connect", connect)
        yield Submission("vertex", server, tmp_path)
