"""The limits of a server: the time and the size of headers and bodies, of a batch and of the queue.

uvicorn itself waits for ever for the headers of a request, of any size.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import termios
from array import array
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
_BODIES_TO_DISCARD = 16
"""Number of bodies of the greatest size that the server reads and discards before it answers with
HTTP 413. A client that still sends would otherwise get a broken connection instead of the
answer."""
_LAST_REQUEST_SECONDS = 0.5
"""After SIGTERM, how long an idle connection accepts a request that is already on its way."""
_UPGRADE = re.compile(rb"\r\n(?:upgrade|http2-settings):[^\r\n]*", re.IGNORECASE)
_CLOSE = {"connection": "close"}


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    Attributes:
      body_bytes: greatest body of a request; a larger one is answered with HTTP 413.
      reviews: most reviews in one request (HTTP 413 if it has more), and in one call of the model.
      queue: most reviews that are accepted but not answered; a request beyond it gets HTTP 429.
      read_seconds: time in which headers must arrive, or the connection is closed, and then the
        body (HTTP 408).
      poll_seconds: time between two polls of the serving folder for a new model.
    """

    body_bytes: int = 4 * 2**20
    reviews: int = 1024
    queue: int = 4096
    read_seconds: float = 10.0
    poll_seconds: float = 1.0


class Bodies:
    def __init__(self, limits: Limits):
        self._limits = limits
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body of a request, which counts as held until the end of the context.

        Raises:
          HTTPException: the body is too large (413), too slow (408) or encoded (400), or the server
            has no memory for it (429).
          ClientDisconnect: the client closed the connection.
        """
        # `Request.headers` decodes all names for each access.
        headers, most = dict(request.scope["headers"]), self._limits.body_bytes
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise HTTPException(
                400, "Content-Encoding is not supported: send the JSON without compression"
            )
        length = int(headers.get(b"content-length", 0))
        too_large = HTTPException(413, f"The body is larger than {most:,} bytes", _CLOSE)
        if length > most and b"expect" in headers:
            raise too_large
        chunks: list[bytes] = []
        size = held = 0
        try:
            with anyio.move_on_after(self._limits.read_seconds) as time_limit:
                async for chunk in request.stream():
                    size += len(chunk)
                    if max(size, length) <= most:
                        chunks.append(chunk)
                        held = size
                        self._hold(len(chunk))
                    elif size > _BODIES_TO_DISCARD * most:
                        break
            if time_limit.cancelled_caught:
                seconds = f"{self._limits.read_seconds:g} s"
                raise HTTPException(408, f"The body did not arrive within {seconds}", _CLOSE)
            if max(size, length) > most:
                raise too_large
            body = b"".join(chunks)
            chunks.clear()
            yield body
        finally:
            self._held -= held

    def _hold(self, size: int) -> None:
        self._held += size
        if self._held > _BODIES_IN_MEMORY * self._limits.body_bytes:
            retry = {"retry-after": "1", **_CLOSE}
            raise HTTPException(429, "Too many large requests at once; retry later", retry)


class LimitedProtocol(HttpToolsProtocol):
    """A connection that ends if headers are too slow or too large.

    It ignores the header `Upgrade`, which Java's HttpClient and `curl --http2` send. The parser
    would skip the body of such a request.

    Attributes:
      read_seconds: time in which the headers must arrive.
    """

    read_seconds = 10.0

    _in_body = _ending = False
    _header_bytes = 0
    _incomplete = b""
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.on_message_begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass the data on, unless the headers have become too large."""
        if not self._in_body:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES + len(data):
                self.transport.close()
                return
            data = self._without_upgrade(self._incomplete + data)
        super().data_received(data)

    def _without_upgrade(self, data: bytes) -> bytes:
        """Return the data without the header `Upgrade`; keep an incomplete last line for later."""
        head, end, rest = data.partition(b"\r\n\r\n")
        self._incomplete = b""
        if not end:
            head = head.rpartition(b"\r\n")[0] or head.rstrip(b"\r")
            self._incomplete = data[len(head) :]
        return _UPGRADE.sub(b"", head) + end + rest

    def on_message_begin(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.read_seconds, self.transport.close)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_body = True
        self._header_bytes = 0
        self._stop_timer()
        super().on_headers_complete()
        if self._ending:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def shutdown(self) -> None:
        """Close the connection after its request.

        An idle connection stays for a moment. Its client may have sent a request that this process
        has not read, and would lose it.
        """
        self._ending = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(_LAST_REQUEST_SECONDS, self._close_if_idle)
        else:
            super().shutdown()

    def _close_if_idle(self) -> None:
        """Close the connection, unless it has a request that the loop has not read.

        If this process had no CPU for a while, its timers come before the requests.
        """
        if self.transport.is_closing():
            return
        unread = array("i", [0])
        fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, unread)
        if not unread[0]:
            super().shutdown()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def limited_protocol(limits: Limits) -> type[Any]:
    """Return the protocol with these limits, as uvicorn's setting `http` requires it."""
    return type("_Protocol", (LimitedProtocol,), {"read_seconds": limits.read_seconds})
