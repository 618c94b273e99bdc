"""What becomes of a connection: ends of every kind, and bytes that are no request."""

import asyncio
import gc
import itertools
import json
import logging
import socket
import ssl
import struct
import time
import weakref

import pytest
import uvloop

from serving.rest import protocol
from serving.rest.app import CLOSED
from serving.rest.protocol import LimitedProtocol, RefusalLog
from tests.serving.rest.running import MODEL, PREDICT, running
from tests.waiting import wait

TEXT = b'{"signature_name": "predict_text", "instances": ["good"]}'
ANSWER = b'{"predictions":[{"label":1,"probability":0.9}]}'
HEAD = f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\n"
GOOD = f"{HEAD}content-length: {len(TEXT)}\r\n\r\n".encode() + TEXT
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
"""The headers with which a client offers HTTP/2."""
OFFERED = HEAD.encode() + OFFER + f"content-length: {len(TEXT)}\r\n\r\n".encode() + TEXT
CHUNKED = HEAD.encode() + OFFER + b"transfer-encoding: chunked\r\n\r\n"
CHUNKED += f"{len(TEXT):x}\r\n".encode() + TEXT + b"\r\n0\r\n\r\n"
EARLY = b"POST /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n"
"""A request whose answer, 404, does not wait for the body."""


def answer_of(connection):
    """Return everything that the server sends until it closes the connection."""
    with connection.makefile("rb") as received:
        return received.read()


def reset(connection):
    """Close a connection with RST, as a proxy or a killed client does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.fixture(scope="module")
def patient(serving):
    """A server that waits for headers and bodies for longer than a test lasts."""
    with running(serving, read_seconds=600) as found:
        yield found


@pytest.fixture
def live(monkeypatch):
    """The connections of the test that are still in memory."""
    found = weakref.WeakSet()
    made = LimitedProtocol.connection_made

    def connection_made(self, transport):
        found.add(self)
        made(self, transport)

    monkeypatch.setattr(LimitedProtocol, "connection_made", connection_made)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent, is_answered",
    [
        (b"", False),
        (GOOD[:30], False),  # in the headers
        (GOOD[:-10], False),  # in the body
        (GOOD, False),  # while the answer is computed or written
        (GOOD, True),  # idle
        (GOOD + GOOD[:30], True),
        (GOOD * 3, False),
        (GOOD * 3, True),
        (GOOD * 2 + GOOD[:-10], False),
        (EARLY, True),  # in the body, after the answer
        (EARLY + b"x" * 10, True),
    ],
)
def test_a_reset_connection_is_released(patient, live, sent, is_answered):
    connections = [patient.connect() for _ in range(50)]
    for connection in connections:
        connection.sendall(sent)
        if is_answered:
            assert connection.recv(20).startswith(b"HTTP/1.1 ")
        elif sent:
            time.sleep(0.0005)  # some resets arrive with the request, others later
    for connection in connections:
        reset(connection)

    def is_released():
        gc.collect()
        return not live

    wait(is_released, 60)
    assert patient.is_well()


@pytest.mark.parametrize("seconds", [0, 0.001, 0.05])
@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_client_that_ends_its_sending_side_is_answered(patient, seconds, version):
    for _ in range(5):
        with patient.connect() as connection:
            connection.sendall(GOOD.replace(b"1.1", version, 1))
            time.sleep(seconds)
            connection.shutdown(socket.SHUT_WR)
            got = answer_of(connection)
            assert got.startswith(b"HTTP/1.1 200 ") and got.endswith(ANSWER)


def test_a_half_closed_client_of_a_large_body_is_answered(patient):
    body = json.dumps({"signature_name": "predict_text", "instances": ["good " * 50_000]}).encode()
    with patient.connect() as connection:
        connection.sendall(f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        assert answer_of(connection).endswith(ANSWER)


@pytest.mark.parametrize("rest", [b"", GOOD[:30], GOOD[:-10]])
def test_all_complete_requests_of_a_half_closed_client_are_answered(patient, rest):
    with patient.connect() as connection:
        connection.sendall(GOOD * 3 + rest)
        connection.shutdown(socket.SHUT_WR)
        got = answer_of(connection)
    assert got.count(b"HTTP/1.1 ") == got.count(ANSWER) == 3


@pytest.mark.parametrize("sent", [b"", GOOD[:30], GOOD[:-10]])
def test_an_unfinished_request_of_a_half_closed_client_ends_the_connection(patient, sent):
    with patient.connect() as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert answer_of(connection) == b""


def test_an_idle_connection_that_is_half_closed_is_closed(patient):
    with patient.connect() as connection:
        connection.sendall(GOOD)
        assert connection.recv(9999).endswith(ANSWER)
        connection.shutdown(socket.SHUT_WR)
        assert answer_of(connection) == b""


@pytest.mark.parametrize(
    "sent, reason",
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "The "),
        (b"MUX / HTTP/1.1\r\n\r\n", "The request is not valid HTTP/1.1: Invalid method "),
        (b"GET\r\n\r\n", "The request is not valid HTTP/1.1: "),
        (b"GET /healthz HTTP/1.1\nhost: x\n\n", "The request is not valid HTTP/1.1: Expected CRLF"),
        (f"{HEAD}content-length: -1\r\n\r\n".encode(), "The request is not valid HTTP/1.1: "),
        (f"{HEAD}transfer-encoding: chunked\r\n\r\nxyz\r\n".encode(), "The request is not valid "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "The client uses HTTP/2, as gRPC does, which is "),
        (b"CONNECT host:1 HTTP/1.1\r\n\r\n", "The URL of the request is not valid"),
        (b"GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n", "The URL of the request is not valid"),
        (b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n", "The "),
    ],
)
@pytest.mark.parametrize("before", [b"", GOOD * 2])
def test_what_is_not_http_gets_400_after_the_requests_before_it(patient, before, sent, reason):
    with patient.connect() as connection:
        connection.sendall(before + sent + GOOD)
        got = answer_of(connection)
    assert got.count(ANSWER) == got.count(b"HTTP/1.1 200 ") == before.count(TEXT)
    head, _, content = got[got.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-type: application/json\r\n" in head
    assert list(json.loads(content)) == ["error"]
    assert json.loads(content)["error"].startswith(reason)
    assert patient.is_well()


@pytest.mark.parametrize(
    "earlier, answer",
    [(b"", b""), (GOOD, ANSWER), (OFFERED, ANSWER), (EARLY + b"x" * 10, b'predict"}')],
)
@pytest.mark.parametrize("size", [1, 60, 10_000])
def test_an_offer_of_http_2_is_ignored_in_every_request(patient, earlier, answer, size):
    sent = earlier + OFFERED + b"GET /healthz HTTP/1.1\r\n" + OFFER + b"\r\n" + CHUNKED + GOOD
    with patient.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), size):
            connection.sendall(sent[start : start + size])
        connection.shutdown(socket.SHUT_WR)
        got = answer_of(connection)
    first, *others = [part.partition(b"HTTP/1.1")[0] for part in got.split(b"\r\n\r\n")[1:]]
    if earlier:
        assert first.endswith(answer)
        first, *others = others
    assert [first, *others[1:]] == [ANSWER] * 3
    assert others[0].startswith(b'{"status":"ok"')


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("later", [b"", GOOD])
def test_an_offer_of_http_2_on_a_connection_that_ends_is_ignored(patient, version, later):
    sent = OFFERED.replace(b"Upgrade,", b"Upgrade, close,", 1).replace(b"1.1", version, 1)
    with patient.connect() as connection:
        connection.settimeout(10)
        connection.sendall(sent + later)
        assert answer_of(connection).partition(b"\r\n\r\n")[2] == ANSWER
    assert patient.is_well()


def test_connect_ends_the_connection(patient):
    with patient.connect() as connection:
        connection.sendall(b"CONNECT / HTTP/1.1\r\nhost: x\r\n\r\n" + GOOD)
        assert answer_of(connection).startswith(b"HTTP/1.1 40")


def test_too_large_headers_get_431(patient):
    with patient.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx: " + b"y" * (protocol.MAX_HEADER_BYTES - 19))
        connection.sendall(b"y")
        got = answer_of(connection)
    assert got.startswith(b"HTTP/1.1 431 ")
    assert got.endswith(b'{"error":"The headers are larger than 65,536 bytes"}')


def test_endless_headers_end_the_connection(patient):
    with patient.connect() as connection, pytest.raises(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\n")
        for _ in itertools.repeat(None, 1_000_000):
            connection.sendall(b"x: " + b"y" * 1000 + b"\r\n")
    assert patient.is_well()


def test_a_port_scan_does_not_fill_the_log(caplog, monkeypatch):
    log = RefusalLog()
    for port in range(20):
        log.add(f"host:{port}", 400, "the request is not valid HTTP/1.1")
    [line] = caplog.records
    assert line.levelno == logging.WARNING
    assert line.message == (
        "request from host:0 answered with HTTP 400: the request is not valid HTTP/1.1"
    )
    later = time.monotonic() + protocol._LOG_SECONDS + 1
    monkeypatch.setattr(protocol.time, "monotonic", lambda: later)
    log.add("host:20", 400, "no")
    assert caplog.messages[1:] == [
        "request from host:20 answered with HTTP 400: no; 19 others since the last such line"
    ]


def test_the_rest_of_a_body_after_an_early_answer_must_arrive(server):
    with server.connect() as connection:
        connection.sendall(EARLY)
        assert connection.recv(9999).startswith(b"HTTP/1.1 404 ")
        connection.sendall(b"x")
        assert answer_of(connection) == b""


def test_a_connection_answers_after_a_body_that_followed_its_answer(patient):
    with patient.connect() as connection:
        connection.sendall(EARLY)
        assert connection.recv(9999).startswith(b"HTTP/1.1 404 ")
        connection.sendall(b"x" * 10 + GOOD)
        assert connection.recv(9999).endswith(ANSWER)


def test_an_idle_connection_ends_even_if_a_body_followed_its_answer(patient, live, monkeypatch):
    with patient.connect() as connection:
        connection.sendall(EARLY)
        assert connection.recv(9999).startswith(b"HTTP/1.1 404 ")
        [one] = live
        one.timeout_keep_alive = 0.1
        connection.sendall(b"x" * 10)
        assert answer_of(connection) == b""


def test_expect_is_answered_before_the_body_is_sent(patient):
    with patient.connect() as connection:
        head, body = GOOD.split(b"\r\n\r\n")
        connection.sendall(head + b"\r\nexpect: 100-continue\r\n\r\n")
        assert connection.recv(9999) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(9999).endswith(ANSWER)


def test_a_client_of_http_1_0_that_expects_gets_one_answer(patient):
    with patient.connect() as connection:
        connection.sendall(GOOD.replace(b"1.1\r\n", b"1.0\r\nexpect: 100-continue\r\n"))
        assert answer_of(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_with_tls_is_named_in_the_log(serving, caplog):
    with running(serving) as server, server.connect() as connection:
        with pytest.raises(ssl.SSLError):
            ssl._create_unverified_context().wrap_socket(connection)
        wait(lambda: "the client uses TLS, which this server does not have" in caplog.text)


@pytest.mark.parametrize(
    "beginning",
    [
        b"PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n",
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(range(12)),
    ],
    ids=["version 1", "version 2"],
)
def test_a_proxy_with_the_proxy_protocol_is_named(patient, beginning):
    with patient.connect() as connection:
        connection.sendall(beginning + GOOD)
        head, _, content = answer_of(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(content)["error"].startswith("The proxy sends the PROXY protocol")


def test_a_status_request_of_http_1_0_ends_the_connection(patient):
    with patient.connect() as connection:
        connection.sendall(f"GET {MODEL} HTTP/1.0\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        assert b'"AVAILABLE"' in answer_of(connection)


def test_uvloop_names_a_closed_connection_as_the_server_expects():
    async def write_after_the_end():
        ours, other = socket.socketpair()
        loop = asyncio.get_running_loop()
        with other:
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
            transport.abort()
            await asyncio.sleep(0)
            transport.write(b"x")

    loop = uvloop.new_event_loop()
    with pytest.raises(RuntimeError, match=CLOSED):
        loop.run_until_complete(write_after_the_end())
    loop.close()
