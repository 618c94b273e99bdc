"""A server that the tests of this folder share."""

import pytest

from tests.serving.rest.models import push
from tests.serving.rest.running import running


@pytest.fixture(scope="session")
def serving(tmp_path_factory):
    """A serving folder with version 3."""
    folder = tmp_path_factory.mktemp("rest") / "serving"
    push(folder, 3)
    return folder


@pytest.fixture(scope="session")
def server(serving):
    """A running server with small limits."""
    limits = {"body_bytes": 20_000, "reviews": 50, "read_seconds": 1.0}
    with running(serving, **limits) as found:
        yield found
