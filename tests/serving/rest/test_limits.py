"""Requests that a server must survive: too large, too slow, too many, and wrong in every way."""

import json
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.serving.rest.running import MODEL, PREDICT

HEAD = f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\n"


def answer_of(connection):
    """Return everything that the server sends until it closes the connection."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


@pytest.mark.parametrize("path", [PREDICT, "/explain"])
def test_a_large_body_gets_413(server, path):
    got = server.post(path, {"text": "a" * 20_000})
    assert (got.status, list(got.json)) == (413, ["error"])
    assert "20,000 bytes" in got.json["error"]
    assert server.is_well()


def test_a_body_of_unknown_size_gets_413_too(server):
    chunks = (b"a" * 1000 for _ in range(50))
    assert server.request("POST", PREDICT, chunks).status == 413
    assert server.is_well()


def test_a_huge_body_is_refused_before_it_is_sent(server):
    with server.connect() as connection:
        head = f"{HEAD}content-length: 100000000000\r\nexpect: 100-continue\r\n\r\n"
        connection.sendall(head.encode())
        assert answer_of(connection).startswith(b"HTTP/1.1 413 ")
    assert server.is_well()


def test_a_large_batch_gets_413(server):
    assert server.predict(*["good"] * 50).status == 200
    got = server.predict(*["good"] * 51)
    assert (got.status, got.json["error"]) == (413, "The request has 51 reviews, limit 50")


def test_a_slow_body_gets_408(server):
    with server.connect() as connection:
        connection.sendall(f'{HEAD}content-length: 100\r\n\r\n{{"inst'.encode())
        got = answer_of(connection)
    assert got.startswith(b"HTTP/1.1 408 ")
    assert b'{"error":"The body did not arrive within 1 s"}' in got
    assert server.is_well()


@pytest.mark.parametrize("start", [b"", b"POST /v1/mod", HEAD.encode() + b"x-header: "])
def test_slow_headers_end_the_connection(server, start):
    with server.connect() as connection:
        connection.sendall(start)
        assert answer_of(connection) == b""
    assert server.is_well()


def test_slow_headers_of_a_second_request_end_the_connection(server):
    with server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /hea")
        got = answer_of(connection)
    assert got.count(b"HTTP/1.1 ") == 1


def test_endless_headers_end_the_connection(server):
    with server.connect() as connection, pytest.raises(OSError):
        for number in range(10_000):
            connection.sendall(
                b"GET / HTTP/1.1\r\n" if not number else b"x: " + b"y" * 1000 + b"\r\n"
            )
        assert answer_of(connection) == b""
        raise OSError
    assert server.is_well()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        f"{HEAD}content-length: -1\r\n\r\n".encode(),
        f"{HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\n".encode(),
        b"CONNECT host:1 HTTP/1.1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_400(server, sent):
    with server.connect() as connection:
        connection.sendall(sent)
        assert connection.recv(12) == b"HTTP/1.1 400"
    assert server.is_well()


def test_a_client_that_leaves_does_no_harm(server):
    body = json.dumps({"signature_name": "predict_text", "instances": ["good"]})
    for sent in (
        f"{HEAD}content-length: {len(body)}\r\n\r\n{body}",
        f"{HEAD}content-length: 9\r\n\r\n",
    ):
        with server.connect() as connection:
            connection.sendall(sent.encode())
    assert server.is_well()


def test_compressed_bodies_are_refused(server):
    assert server.request("POST", PREDICT, b"x", {"content-encoding": "gzip"}).status == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
TENSORS = JSON | st.lists(st.text() | st.fixed_dictionaries({"b64": st.text()}) | JSON)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "signature_name": st.sampled_from(
            ["predict_text", "serving_default", "transform_features", "__saved_model_init_op"]
        )
        | JSON,
        "instances": TENSORS | st.lists(st.fixed_dictionaries({"texts": TENSORS})),
        "inputs": TENSORS | st.fixed_dictionaries({"texts": TENSORS}),
        "text": JSON,
    },
)
DEEP = b"[" * 300 + b"]" * 300
ENCODED = BODIES.map(lambda document: json.dumps(document).encode()) | st.binary()


@given(path=st.sampled_from([PREDICT, "/explain", f"{MODEL}:classify"]), body=ENCODED)
@example(path="/explain", body=b'{"text": "\\u0000"}')
@example(path=PREDICT, body=b'{"signature_name": "__saved_model_init_op", "instances": ["a"]}')
@example(path=PREDICT, body=b'{"instances": [1e400], "signature_name": "predict_text"}')
@example(path=PREDICT, body=b'{"instances": [18446744073709551616]}')
@example(path=PREDICT, body=b'{"instances": {"a": ' + DEEP + b"}}")
@example(path="/explain", body=DEEP)
def test_no_body_causes_a_server_error(server, path, body):
    got = server.request("POST", path, body)
    assert got.status in (200, 400, 413)
    if got.status != 200:
        assert list(got.json) == ["error"]


PATHS = st.lists(
    st.sampled_from(
        [
            "/",
            "v1",
            "models",
            "amazon_reviews",
            "versions",
            "3",
            ":predict",
            "metadata",
            "labels",
            "%",
        ]
    )
    | st.text(string.ascii_letters + string.digits + "%.:;~?&=", max_size=5)
).map(lambda words: "/" + "".join(words))


@given(method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]), path=PATHS)
@example(method="GET", path="/v1/models/%ff%00")
def test_no_address_causes_a_server_error(server, method, path):
    assert server.request(method, path).status < 500


def test_the_server_is_well_after_all_of_it(server):
    assert server.is_well()
