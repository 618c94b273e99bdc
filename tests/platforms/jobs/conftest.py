"""A cluster on loopback for the tests of TFJobs."""

import pytest

from tests.platforms.jobs.ground import Ground
from tests.platforms.jobs.kubernetes_server import KubernetesServer
from tests.platforms.jobs.training_operator import Operator


@pytest.fixture
def server(tmp_path, monkeypatch):
    """An API server, whose address is in the kube config."""
    server = KubernetesServer()
    monkeypatch.setenv("KUBECONFIG", server.kube_config(tmp_path))
    yield server
    server.close()


@pytest.fixture
def operator(server):
    operator = Operator(server)
    yield operator
    operator.close()


@pytest.fixture
def ground(server, operator, log, tmp_path):
    return Ground(server, operator, tmp_path)


@pytest.fixture
def quiet(server, log, tmp_path):
    """A Ground without an operator: the test itself changes the cluster."""
    return Ground(server, None, tmp_path)
