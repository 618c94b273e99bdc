"""The limits of a server: the time and the size of headers and bodies, of a batch and of the queue.

uvicorn itself waits for ever for the headers of a request, of any size.
"""

from __future__ import annotations

import contextlib
import re
from asyncio import Transport
from asyncio.events import TimerHandle
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 64 * 2**10
_BODIES_IN_MEMORY = 16
"""Number of bodies of the greatest size that fit into the memory for requests."""
_LAST_REQUEST_SECONDS = 0.5
"""After SIGTERM, how long an idle connection accepts a request that is already on its way."""
_UPGRADE = re.compile(rb"\r\n(?:upgrade|http2-settings):[^\r\n]*", re.IGNORECASE)
_CLOSE = {"connection": "close"}


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    body_bytes: int = 4 * 2**20
    """Greatest body of a request; a larger one is answered with HTTP 413."""
    reviews: int = 1024
    """Most reviews in one request (HTTP 413 if it has more), and in one call of the model."""
    queue: int = 4096
    """Most reviews that are accepted but not answered; a request beyond it gets HTTP 429."""
    read_seconds: float = 10.0
    """Time in which headers must arrive, or the connection is closed, and then the body (408)."""
    poll_seconds: float = 1.0
    """Time between two polls of the serving folder for a new model."""


class Bodies:
    def __init__(self, limits: Limits):
        self._limits = limits
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body of a request, which counts as held until the end of the context.

        The rest of a body that is too large is read and discarded. A client that still sends would
        otherwise get a broken connection instead of the answer.
        """
        most = self._limits.body_bytes
        body, size = bytearray(), 0
        try:
            with anyio.move_on_after(self._limits.read_seconds) as time_limit:
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        continue
                    body += chunk
                    self._held += len(chunk)
                    if self._held > _BODIES_IN_MEMORY * most:
                        retry = {"retry-after": "1", **_CLOSE}
                        raise HTTPException(429, "Too many large requests; retry later", retry)
            if size > most:
                raise HTTPException(413, f"The body is larger than {most:,} bytes", _CLOSE)
            if time_limit.cancelled_caught:
                seconds = f"{self._limits.read_seconds:g} s"
                raise HTTPException(408, f"The body did not arrive within {seconds}", _CLOSE)
            yield bytes(body)
        finally:
            self._held -= len(body)


class LimitedProtocol(HttpToolsProtocol):
    """A connection that ends if headers are too slow or too large.

    It ignores the header `Upgrade`, which Java's HttpClient and `curl --http2` send. The parser
    would skip the body of such a request.
    """

    _in_body = _ending = False
    _head = b""
    _timer: TimerHandle | None = None

    def __init__(self, read_seconds: float, **arguments: Any):
        super().__init__(**arguments)
        self._read_seconds = read_seconds

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Pass the data on; the headers of a request when they are complete."""
        if not self._in_body:
            self._start_timer()
            start = max(0, len(self._head) - 3)
            data, self._head = self._head + data, b""
            end = data.find(b"\r\n\r\n", start)
            size = len(data) if end < 0 else end
            if size > MAX_HEADER_BYTES:
                self.transport.close()
                return
            # The parser answers at once what is not HTTP, such as the beginning of TLS.
            if end < 0 and data[:1].isalpha():
                self._head = data
                return
            data = _UPGRADE.sub(b"", data[:size]) + data[size:]
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._in_body = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().on_headers_complete()
        if self._ending:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def shutdown(self) -> None:
        """Close the connection after its request, or after a moment if it is idle."""
        self._ending = True
        self.loop.call_later(_LAST_REQUEST_SECONDS, super().shutdown)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._read_seconds, self.transport.close)
