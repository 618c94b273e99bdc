"""Requests per second and latency of `amazon-reviews serve`, over loopback.

    python -m benchmarks.serving [--serving FOLDER] [--seconds 5] [--output FILE]

The script starts a server process for the newest model in FOLDER, and sends reviews of the sample
data to the server. Both processes share the cores. Each row is one measurement:

- 1, 8 and 64 clients that send the next request as soon as they have an answer, with one review
  or with 32 in a request;
- 64 clients that together send 1,000 requests a second. The latency is measured from the time at
  which a request is due, so it includes the delay of a client that is still busy;
- before overload: one client again, at a second server, whose queue holds 512 reviews;
- overload: 256 clients with 32 reviews in a request at that server, which refuses a part of the
  requests with HTTP 429 (column *shed*). The client of a refused request sends the next one after
  a second, the value of the header `Retry-After`;
- after overload: one client again, to show that the server has recovered.

An error is a request without an answer, or with a status other than 200 and 429. `server CPU` is
the CPU time of the server for a request; it varies less than the other columns if other work runs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
import uvloop
from rich.table import Table

from benchmarks.usage import REPOSITORY, wide_console

_PATH = "/v1/models/amazon_reviews:predict"
_BATCHED = 32
_QUEUE = 512
_SERVER = """
import sys
from serving.rest.limits import Limits
from serving.rest.server import serve
from serving.rest.listener import open_socket
from serving.rest.settings import Server
limits = Limits(queue=int(sys.argv[2]))
ready = lambda url, version: print(url + "/", flush=True)
serve(sys.argv[1], open_socket(Server(port=0)), ready, limits=limits)
"""
_RETRY_AFTER = 1.0
_END_SECONDS = 60
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Load:
    """The load of one measurement: clients with one connection each.

    `reviews` is the number of reviews in a request, and `rate` the requests a second of all clients
    together. With the rate 0 each client sends its next request as soon as it has an answer.
    """

    clients: int
    reviews: int
    rate: float = 0.0


@dataclass
class Tally:
    """The answers to the requests of one measurement."""

    milliseconds: list[float] = field(default_factory=list)
    sent: int = 0
    shed: int = 0
    errors: int = 0


_COLUMNS = {
    "requests_per_second": "requests/s",
    "reviews_per_second": "reviews/s",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "server_cpu_ms": "server CPU, ms",
    "shed": "shed",
    "errors": "errors",
}
LOADS = {
    **{
        f"{clients} clients, {reviews} reviews": Load(clients, reviews)
        for reviews in (1, _BATCHED)
        for clients in (1, 8, 64)
    },
    "64 clients, 1,000 requests/s": Load(64, 1, 1000.0),
    # The last three are measured at a second server, with a short queue.
    "before overload": Load(1, 1),
    "overload": Load(256, _BATCHED),
    "after overload": Load(1, 1),
}


def measure(server: Server, load: Load, seconds: float, reviews: list[str]) -> dict[str, Any]:
    """Return the figures of one measurement, which begins after a warm-up of one second.

    Args:
      server: the running server.
      load: the clients and their requests.
      seconds: the duration of the measurement.
      reviews: the texts that are sent.
    """
    requests = list(itertools.islice(_requests(reviews, load.reviews), 256))
    used = server.cpu_seconds()
    with contextlib.closing(uvloop.new_event_loop()) as loop:
        clients = _clients(server.port, load, 1.0, seconds, requests)
        tally, elapsed = loop.run_until_complete(clients)
    used = server.cpu_seconds() - used
    sorted_ms = sorted(tally.milliseconds)
    answered = len(sorted_ms)
    return {
        "requests_per_second": round(answered / elapsed, 1),
        "reviews_per_second": round(answered * load.reviews / elapsed, 1),
        "p50_ms": round(statistics.median(sorted_ms), 2) if answered else None,
        "p99_ms": round(sorted_ms[int(0.99 * (answered - 1))], 2) if answered else None,
        "server_cpu_ms": round(1000 * used / max(1, tally.sent), 2),
        "answered": answered,
        "shed": tally.shed,
        "errors": tally.errors,
    }


def _requests(reviews: list[str], count: int) -> Iterator[bytes]:
    endless = itertools.cycle(reviews)
    while True:
        instances = list(itertools.islice(endless, count))
        body = json.dumps({"signature_name": "predict_text", "instances": instances}).encode()
        head = f"POST {_PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        yield head.encode() + body


async def _clients(
    port: int, load: Load, warm_up: float, seconds: float, requests: list[bytes]
) -> tuple[Tally, float]:
    tally = Tally()
    numbers = itertools.count()
    begin = time.perf_counter()
    counted, end = begin + warm_up, begin + warm_up + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            number = next(numbers)
            due = time.perf_counter()
            if load.rate:
                due = begin + number / load.rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if due > end:
                break
            try:
                writer.write(requests[number % len(requests)])
                status = await asyncio.wait_for(_read_answer(reader), _TIMEOUT)
            except (OSError, EOFError, asyncio.TimeoutError):
                status = 0
            tally.sent += 1
            if due >= counted:
                _count(tally, status, time.perf_counter() - due)
            if status == 429:
                await asyncio.sleep(_RETRY_AFTER)
            if not status:
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    await asyncio.gather(*(client() for _ in range(load.clients)))
    return tally, time.perf_counter() - counted


def _count(tally: Tally, status: int, seconds: float) -> None:
    if status == 200:
        tally.milliseconds.append(1000 * seconds)
    elif status == 429:
        tally.shed += 1
    else:
        tally.errors += 1


async def _read_answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head[9:12])


class Server:
    """A server process, which ends with the context.

    Args:
      serving: the folder of the pushed versions.
      queue: the number of reviews in the queue of the server.
    """

    def __init__(self, serving: Path, queue: int = 4096):
        self._words = [str(serving), str(queue)]

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has used."""
        return sum(psutil.Process(self._process.pid).cpu_times()[:2])

    def __enter__(self) -> Server:
        """Start the server.

        Raises:
          SystemExit: the server did not start.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, *self._words],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            if found:
                self.port = int(found[1])
                return self
        raise SystemExit("the server did not start")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(_END_SECONDS)


def main() -> None:
    """Print a table of all measurements, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serving", type=Path, default=Path("runs/serving"))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    serving = arguments.serving.resolve()
    lines = (REPOSITORY / "sample_data/reviews.ft.txt").read_text("utf-8").splitlines()
    reviews = [line.split(" ", 1)[1] for line in lines[:4096]]
    found: dict[str, Any] = {}
    with Server(serving) as server, Server(serving, _QUEUE) as small:
        for name, load in LOADS.items():
            at = small if "overload" in name else server
            found[name] = {**asdict(load), **measure(at, load, arguments.seconds, reviews)}
            print(name, found[name], file=sys.stderr)
    table = Table("load", *_COLUMNS.values())
    for name, row in found.items():
        table.add_row(name, *(str(row[key]) for key in _COLUMNS))
    wide_console().print(table)
    if arguments.output:
        arguments.output.write_text(json.dumps(found, indent=2) + "\n")
    if any(row["errors"] for row in found.values()):
        sys.exit(1)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
