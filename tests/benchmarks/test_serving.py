"""The benchmark of the REST server: its figures, and that it counts what was shed."""

import pytest

from benchmarks.serving import Load, measure
from tests.serving.rest.models import push
from tests.serving.rest.running import running

REVIEWS = ["good", "a bad phone"]


class Local:
    """A server in this process, in place of the benchmark's own."""

    def __init__(self, port):
        self.port = port
        self.used = iter([1.0, 3.0])

    def cpu_seconds(self):
        return next(self.used)


@pytest.mark.slow
def test_answers_are_counted_and_timed_and_others_are_errors(tmp_path):
    serving = tmp_path / "serving"
    push(serving, 1)
    with running(serving) as server:
        found = measure(Local(server.port), Load(2, 3, rate=50.0), 1.0, REVIEWS)
    assert (found["shed"], found["errors"]) == (0, 0)
    assert 1 <= found["answered"] <= 51
    assert found["reviews_per_second"] == pytest.approx(3 * found["requests_per_second"], rel=0.1)
    assert 0 < found["p50_ms"] <= found["p99_ms"]
    assert found["server_cpu_ms"] > 0
    with running(serving, reviews=2) as server:
        found = measure(Local(server.port), Load(1, 3, rate=5.0), 1.0, REVIEWS)
    assert found["answered"] == 0 < found["errors"]
