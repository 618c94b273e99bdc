"""uvicorn's HTTP protocol with limits on the time and the size of a request's headers.

uvicorn itself waits for ever for the headers of a request, of any size.
"""

from __future__ import annotations

from asyncio import Transport
from asyncio.events import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 64 * 2**10


class LimitedProtocol(HttpToolsProtocol):
    """A connection that ends if headers are too slow or too large.

    Attributes:
      header_timeout: seconds in which the headers must arrive.
    """

    header_timeout = 10.0

    _in_headers = True
    _header_bytes = 0
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the time of the first request's headers."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass the data on, unless the headers have become too large."""
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES + len(data):
                self.transport.close()
                return
        super().data_received(data)
        if self._in_headers and self.parser is not None:
            self._start_timer()

    def on_message_begin(self) -> None:
        """Note that headers follow."""
        self._in_headers = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the headers are complete."""
        self._in_headers = False
        self._header_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.header_timeout, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


def limited_protocol(header_timeout: float) -> type[Any]:
    """Return the protocol with this time limit, as uvicorn's setting `http` requires it."""
    return type("_Protocol", (LimitedProtocol,), {"header_timeout": header_timeout})
