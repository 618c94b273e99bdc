"""Submissions to Kubeflow Pipelines and to Vertex AI, each with a server of its own."""

from unittest.mock import Mock

import pytest

from platforms import follow
from platforms.kubeflow import api as kubeflow_api
from platforms.vertex import api as vertex_api
from platforms.vertex import client as vertex_client
from tests.platforms.kubeflow.kfp_server import serving as serving_kubeflow
from tests.platforms.submission import Submission
from tests.platforms.vertex.vertex_server import serving as serving_vertex


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.01)


@pytest.fixture
def kubeflow(monkeypatch, tmp_path):
    """A submission on a machine that knows no cluster."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kube.yaml"))
    for name in (kubeflow_api.TOKEN_VARIABLE, kubeflow_api.UI_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    server = serving_kubeflow(monkeypatch)
    return Submission("kubeflow", server, tmp_path, endpoint=server.url)


@pytest.fixture
def vertex(monkeypatch, tmp_path):
    monkeypatch.setattr(vertex_client, "RETRY_SECONDS", 5.0)
    monkeypatch.setattr(vertex_client, "find_credentials", Mock())
    with serving_vertex() as server:
        monkeypatch.setattr(vertex_api, "connect", server.connect)
        yield Submission("vertex", server, tmp_path)
