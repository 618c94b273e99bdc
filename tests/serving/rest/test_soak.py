"""Many requests, good and bad, to one server: its memory and its counts must not grow."""

import asyncio
import json
import os
import random
import socket
import struct
import subprocess
from urllib.parse import urlsplit

import psutil
import pytest

from core import processes
from tests.exhaustive import exhaustive
from tests.serving.rest.running import MODEL, PREDICT, Running

pytestmark = pytest.mark.slow

PARTS, CLIENTS, ON_A_CONNECTION = 4, 16, 20
MOST_GROWTH = 48 << 20  # bytes between the first quarter of the requests and the last one
RESETS, MOST_GROWTH_OF_RESETS = 20_000, 24 << 20


def request(line, body=b"", *headers):
    head = [f"{line} HTTP/1.1", "host: x", *headers, f"content-length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


def predict(*texts):
    document = {"signature_name": "predict_text", "instances": texts}
    return request(f"POST {PREDICT}", json.dumps(document).encode())


OFFER = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"
ANSWERED = [
    (predict("good phone"), 200),
    (predict(*["good phone " * 50] * 60), 200),
    (request("POST /explain", b'{"text": "a good phone"}', *OFFER), 200),
    (request(f"GET {MODEL}"), 200),
    (request("GET /metrics"), 200),
    (predict(*["good"] * 1025), 413),
    (predict(), 400),
    (predict({"b64": "!"}), 400),
    (request(f"POST {PREDICT}", b"{" * 500), 400),
    (request(f"POST {PREDICT}", b'{"instances": ["not an Example"]}'), 400),
    (request(f"POST {PREDICT}", b"x", "content-encoding: gzip"), 415),
    (request("GET /nothing"), 404),
    (request("DELETE /healthz"), 405),
]
GOOD = predict("good phone")
ENDS = [
    b"",
    b"\x16\x03\x01\x02\x00\x01",
    b"GET\r\n\r\n",
    GOOD[:40],
    GOOD[:-10],
    GOOD,
    GOOD * 3,
    b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 70_000,
    request(f"POST {PREDICT}", b" " * (4 << 20))[: 1 << 20],
    f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n".encode()
    + b"x" * 9999,
]
"""What a client sends last, before it breaks the connection without reading an answer."""


async def answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    headers = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
    await reader.readexactly(int(headers[b"content-length"]))
    return int(head.split()[1]), headers.get(b"connection")


async def client(port, chance, count):
    while count > 0:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for sent, status in chance.choices(ANSWERED, k=ON_A_CONNECTION):
            cut = chance.randrange(len(sent))
            writer.write(sent[:cut])
            if chance.random() < 0.1:
                await writer.drain()
                await asyncio.sleep(0.01)
            writer.write(sent[cut:])
            found, connection = await answer(reader)
            assert found == status, sent[:200]
            if connection == b"close":
                break
        writer.write(chance.choice(ENDS))
        await asyncio.sleep(0.001)
        reset(writer)
        count -= ON_A_CONNECTION + 1


def reset(writer):
    """Close a connection with RST; otherwise many of them would use up the ports of a machine."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def load(port, seed, requests):
    each = requests // PARTS // CLIENTS
    await asyncio.gather(
        *(client(port, random.Random(f"{seed} {n}"), each) for n in range(CLIENTS))
    )


@pytest.fixture
def process(serving, tmp_path):
    command = processes.command("serving.rest.server", str(serving))
    with (
        (tmp_path / "log").open("wb") as log,
        # TensorFlow logs every request whose Examples cannot be parsed.
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        ) as started,
    ):
        yield started
        started.kill()


async def reset_after_answer(port, count):
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GOOD)
        assert await answer(reader) == (200, None)
        reset(writer)


async def resets(port, count):
    each = count // CLIENTS
    await asyncio.gather(*(reset_after_answer(port, each) for _ in range(CLIENTS)))


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_connections_that_are_reset(process):
    """uvicorn keeps an idle connection that ends with RST for 620 s, with its request."""
    server = Running(None, urlsplit(json.loads(process.stdout.readline())["url"]).port)
    watched = psutil.Process(process.pid)
    asyncio.run(resets(server.port, 2_000))
    first = watched.memory_info().rss
    asyncio.run(resets(server.port, RESETS))
    assert server.is_well()
    assert watched.memory_info().rss - first < MOST_GROWTH_OF_RESETS


@pytest.mark.parametrize("requests", [1_300, exhaustive(50_000)])
def test_memory_and_counts_do_not_grow(process, tmp_path, requests):
    server = Running(None, urlsplit(json.loads(process.stdout.readline())["url"]).port)
    watched = psutil.Process(process.pid)
    used = []
    for part in range(PARTS):
        asyncio.run(load(server.port, part, requests))
        used.append((watched.memory_info().rss, watched.num_fds()))
    assert server.is_well()
    assert b"\namazon_reviews_queue 0.0\n" in server.get("/metrics").content
    assert used[-1][0] - used[0][0] < MOST_GROWTH, used
    assert used[-1][1] <= used[0][1] + CLIENTS, used
    # A client that leaves, and a request that is wrong, are no error of the server.
    assert "Traceback" not in (tmp_path / "log").read_text()
