"""Overload: the server refuses what it has no room for, answers what it accepted, and recovers."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from serving.rest import bodies
from serving.rest.batching import INLINE_BYTES
from serving.rest.models import LoadedModel
from tests.serving.rest.running import PREDICT, running, wait_until

LONG = "good " * INLINE_BYTES  # too long for a call in the event loop
CLIENTS, REQUESTS = 16, 15


@pytest.fixture
def blocked(monkeypatch):
    """An event until which every call of the model with a long review waits."""
    go, plain = threading.Event(), LoadedModel.call

    def call(self, signature, texts):
        if max(map(len, texts)) > INLINE_BYTES:
            assert go.wait(60)
        return plain(self, signature, texts)

    monkeypatch.setattr(LoadedModel, "call", call)
    yield go
    go.set()


def metric(server, name):
    lines = server.get("/metrics").content.decode().splitlines()
    return {float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")}


def test_a_full_queue_gets_429_with_retry_after_and_accepted_requests_are_answered(
    serving, blocked
):
    with running(serving, max_queue=2) as server, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.predict, LONG, "bad")
        wait_until(lambda: metric(server, "amazon_reviews_queue") == {2.0})
        for refused in (server.predict("good"), server.post("/explain", {"text": "good"})):
            assert refused.status == 429
            assert refused.headers["retry-after"] == "1"
            assert refused.json == {
                "error": "The queue is full: 2 reviews are waiting, limit 2; retry later"
            }
        blocked.set()
        answer = accepted.result()
        assert answer.status == 200
        assert [one["label"] for one in answer.json["predictions"]] == [1, 0]
        assert metric(server, "amazon_reviews_queue") == {0.0}
        assert server.is_well()
        refusals = 'amazon_reviews_requests_total{code="429",kind="predict"}'
        assert metric(server, refusals) == {1.0}


def test_many_clients_of_a_slow_model_lose_no_accepted_request(serving, monkeypatch):
    plain, classified = LoadedModel.call, []

    def call(self, signature, texts):
        time.sleep(0.02)
        classified.extend(texts)
        return plain(self, signature, texts)

    with running(serving, max_queue=4) as server:
        monkeypatch.setattr(LoadedModel, "call", call)
        with ThreadPoolExecutor(CLIENTS) as pool:
            names = [f"good {number}" for number in range(CLIENTS * REQUESTS)]
            answers = list(pool.map(server.predict, names))
        monkeypatch.undo()
        statuses = Counter(answer.status for answer in answers)
        assert statuses.keys() == {200, 429}
        assert {a.headers.get("retry-after") for a in answers if a.status == 429} == {"1"}
        # The model has classified the reviews of exactly those requests that got an answer.
        answered = [name for name, a in zip(names, answers, strict=True) if a.status == 200]
        assert sorted(classified) == sorted(name.encode() for name in answered)
        assert server.is_well()


def test_many_large_bodies_at_once_get_429(serving, monkeypatch):
    monkeypatch.setattr(bodies, "_BODIES_IN_MEMORY", 1)
    head = f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n".encode()
    with (
        running(serving, max_body_bytes=1000) as server,
        server.connect() as first,
        server.connect() as second,
    ):
        first.sendall(head + b" " * 600)
        time.sleep(0.2)
        second.sendall(head + b" " * 600)
        refused = second.recv(65536)
        assert refused.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1" in refused.lower()
        # The first request is not affected: its body arrives, and is no JSON.
        first.sendall(b" " * 300)
        assert first.recv(65536).startswith(b"HTTP/1.1 400 ")
        assert server.is_well()
