"""Requests that a server must survive: too large, too slow, too many, and wrong in every way."""

import asyncio
import json
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request

from serving.rest import limits, protocol
from serving.rest.batching import INLINE_BYTES
from serving.rest.model import LoadedModel
from tests.serving.rest.running import PREDICT, running
from tests.waiting import wait

LONG = "good " * INLINE_BYTES  # too long for a call in the event loop
HEAD = f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\n"


def answer_of(connection):
    """Return everything that the server sends until it closes the connection."""
    with connection.makefile("rb") as received:
        return received.read()


@pytest.mark.parametrize("path", [PREDICT, "/explain"])
def test_a_large_body_gets_413_even_if_its_size_is_unknown(server, path):
    got = server.post(path, {"text": "a" * 20_000})
    assert (got.status, list(got.json)) == (413, ["error"])
    assert "20,000 bytes" in got.json["error"]
    chunks = (b"a" * 1000 for _ in range(50))
    assert server.request("POST", path, chunks).status == 413
    assert server.is_well()


def test_the_greatest_body_is_answered(server):
    assert server.post(PREDICT, TEXT.ljust(20_000)).content == ANSWER
    assert server.post(PREDICT, TEXT.ljust(20_001)).status == 413


def test_the_greatest_number_of_reviews_is_answered(server):
    assert len(server.predict(*["good"] * 50).json["predictions"]) == 50
    refused = server.predict(*["good"] * 51)
    assert (refused.status, refused.json["error"]) == (413, "The request has 51 texts, limit 50")


def test_a_slow_body_gets_408(server):
    with server.connect() as connection:
        connection.sendall(f'{HEAD}content-length: 100\r\n\r\n{{"inst'.encode())
        got = answer_of(connection)
    assert got.startswith(b"HTTP/1.1 408 ")
    assert b'{"error":"The body did not arrive within 1 s"}' in got
    assert server.is_well()


@pytest.mark.parametrize("start", [b"", HEAD.encode() + b"x-header: "])
def test_slow_headers_end_the_connection(server, start):
    with server.connect() as connection:
        connection.sendall(start)
        assert answer_of(connection) == b""
    assert server.is_well()


TEXT = b'{"signature_name": "predict_text", "instances": ["good"]}'
ANSWER = b'{"predictions":[{"label":1,"probability":0.9}]}'


JAVA = """
import java.net.URI;
import java.net.http.*;
public class Post {
  public static void main(String[] words) throws Exception {
    var body = HttpRequest.BodyPublishers.ofString(words[1]);
    var request = HttpRequest.newBuilder(URI.create(words[0])).POST(body).build();
    var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode() + answer.body());
  }
}
"""


@pytest.mark.slow
def test_the_default_client_of_java_is_answered(server, tmp_path):
    """It offers HTTP/2 with its first request."""
    if not shutil.which("java"):
        pytest.skip("java is not installed")
    (tmp_path / "Post.java").write_text(JAVA)
    url = f"http://127.0.0.1:{server.port}{PREDICT}"
    command = ["java", str(tmp_path / "Post.java"), url, TEXT.decode()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "200" + ANSWER.decode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "signature_name": st.sampled_from(["predict_text", "serving_default"]) | JSON,
        "instances": JSON | st.lists(st.text() | st.fixed_dictionaries({"b64": st.text()}) | JSON),
        "inputs": JSON | st.fixed_dictionaries({"texts": JSON}),
        "text": JSON,
    },
)
DEEP = b"[" * 300 + b"]" * 300
ENCODED = BODIES.map(lambda document: json.dumps(document).encode()) | st.binary()


@settings(max_examples=40)
@given(path=st.sampled_from([PREDICT, "/explain"]), body=ENCODED)
@example(path="/explain", body=b'{"text": "\\u0000"}')
@example(path=PREDICT, body=b'{"signature_name": "__saved_model_init_op", "instances": ["a"]}')
@example(path=PREDICT, body=b'{"instances": [1e400], "signature_name": "predict_text"}')
@example(path="/explain", body=DEEP)
def test_no_body_causes_a_server_error(server, path, body):
    got = server.request("POST", path, body)
    assert got.status in (200, 400, 413)
    if got.status != 200:
        assert list(got.json) == ["error"]


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
    with running(serving, queue=2) as server, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.predict, LONG, "bad")
        wait(lambda: metric(server, "amazon_reviews_queue") == {2.0})
        for refused in (server.predict("good"), server.post("/explain", {"text": "good"})):
            assert refused.status == 429
            assert refused.headers["retry-after"] == "1"
            assert refused.json == {
                "error": "The queue is full: 2 texts are waiting, limit 2; retry later"
            }
        blocked.set()
        answer = accepted.result()
        assert answer.status == 200
        assert [one["label"] for one in answer.json["predictions"]] == [1, 0]
        assert metric(server, "amazon_reviews_queue") == {0.0}
        assert server.is_well()
        refusals = 'amazon_reviews_requests_total{code="429",kind="predict"}'
        assert metric(server, refusals) == {1.0}


def test_large_bodies_count_until_they_are_answered(serving, monkeypatch, blocked):
    monkeypatch.setattr(limits, "_BODIES_IN_MEMORY", 1)
    with running(serving, body_bytes=100_000) as server, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.predict, LONG)
        wait(lambda: metric(server, "amazon_reviews_queue") == {1.0})
        refused = server.predict(LONG)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        blocked.set()
        assert accepted.result().status == 200
        assert server.predict(LONG).status == 200


def test_refused_bodies_are_not_held(monkeypatch):
    monkeypatch.setattr(limits, "_BODIES_IN_MEMORY", 2)
    bodies = limits.Bodies(limits.Limits(body_bytes=1_000))

    async def read(*parts):
        """Return the length of a body that arrives in parts, or the status of its refusal."""
        chunks = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        chunks[-1]["more_body"] = False
        received = iter(chunks)

        async def receive():
            return next(received)

        request = Request({"type": "http", "headers": []}, receive)
        try:
            async with bodies.read(request) as body:
                return len(body)
        except HTTPException as error:
            return error.status_code

    for _ in range(5):
        assert asyncio.run(read(b"a" * 900, b"a" * 900)) == 413
        assert asyncio.run(read(b"a" * 900, b"a" * 100)) == 1_000


def test_a_request_that_arrives_after_sigterm_is_answered(serving, monkeypatch):
    monkeypatch.setattr(protocol, "_LAST_REQUEST_SECONDS", 10.0)
    with running(serving) as server, server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        server.end()
        wait(lambda: not server.accepts())
        connection.sendall(HEAD.encode() + b"content-length: %d\r\n\r\n" % len(TEXT) + TEXT)
        assert answer_of(connection).endswith(ANSWER)
