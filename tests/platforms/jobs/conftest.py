"""A cluster on loopback for the tests of training jobs."""

import pytest

from platforms.jobs.choice import KINDS
from tests.platforms.jobs.controllers import Operator
from tests.platforms.jobs.ground import Ground
from tests.platforms.jobs.kubernetes_server import KubernetesServer


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


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request):
    """Each kind of job."""
    return request.param


@pytest.fixture
def ground(server, operator, log, tmp_path, kind):
    return Ground(server, operator, tmp_path, kind)


@pytest.fixture
def quiet(server, log, tmp_path, kind):
    """A Ground without controllers: the test itself changes the cluster."""
    return Ground(server, None, tmp_path, kind)
