"""A connection of a client, with limits that uvicorn does not have.

uvicorn itself has no limits for the time and the size of the headers of a request. It does not
answer a client that has closed its sending side. Its answer to a request that is not HTTP is not
JSON.
"""

from __future__ import annotations

import logging
import re
import time
from asyncio import Transport
from asyncio.events import TimerHandle
from collections import deque
from http import HTTPStatus
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEADER_BYTES = 64 * 2**10
"""Greatest size of the headers of a request; larger headers are answered with HTTP 431."""
_LAST_REQUEST_SECONDS = 0.5
"""Seconds after SIGTERM for which an idle connection still accepts a request, because the client
may have sent it already."""
_LOG_SECONDS = 60.0
"""Smallest number of seconds between two log lines about requests that are not HTTP, such as those
of a port scan."""
_END_OF_HEADERS = re.compile(rb"\n\r?\n")
"""Lines that end with LF alone end the headers too, and the parser refuses them."""
_NO_PROXY = (
    "the proxy sends the PROXY protocol, which this server does not have; remove it from the "
    "settings of the proxy, such as `send-proxy` of HAProxy"
)
_OTHERS = {
    b"\x16\x03": "the client uses TLS, which this server does not have; use http:// in place of "
    "https://",
    b"PROXY ": _NO_PROXY,
    b"\r\n\r\n\x00\r\nQUIT\n": _NO_PROXY,
}
"""The beginning of a connection of another protocol -> the answer."""
_HTTP_2 = "Pause on PRI/Upgrade"
"""The parser's error at the beginning of HTTP/2."""
_NO_HTTP_2 = "the client uses HTTP/2, as gRPC does, which is not supported; use HTTP/1.1"
_CONNECT, _UPGRADE = b"CONNECT", b"upgrade"
_log = logging.getLogger(__name__)


class RefusalLog:
    """The log of the requests that are not HTTP, with a limit on the number of its lines."""

    def __init__(self) -> None:
        self._silent_until = 0.0
        self._left_out = 0

    def add(self, client: str, status: int, reason: str) -> None:
        """Log a refused request, or count it for the next line.

        Args:
          client: the address of the client.
          status: the status of the answer.
          reason: why the request was refused, in one line.
        """
        now = time.monotonic()
        if now < self._silent_until:
            self._left_out += 1
            return
        others = f"; {self._left_out:,} others since the last such line" if self._left_out else ""
        _log.warning("request from %s answered with HTTP %d: %s%s", client, status, reason, others)
        self._silent_until = now + _LOG_SECONDS
        self._left_out = 0


class LimitedProtocol(HttpToolsProtocol):
    """A connection that ends if the headers of a request are too slow or too large.

    It ignores the header `Upgrade`, which Java's HttpClient and `curl --http2` send. The parser
    skips the body of such a request, so a new one gets the headers, without this one.

    Args:
      read_seconds: see `Limits`.
      refusals: the log that all connections of the server share.
      arguments: those of uvicorn.
    """

    _in_body = _ending = False
    _head = b""
    _without_upgrade = b""
    """The headers for a new parser; empty if those of the newest request have no `Upgrade`."""
    _timer: TimerHandle | None = None
    _farewell: bytes | None = None
    """Bytes to send after the last answer, before the connection is closed; None if the connection
    stays open."""

    def __init__(self, read_seconds: float, refusals: RefusalLog, **arguments: Any):
        super().__init__(**arguments)
        self._read_seconds = read_seconds
        self._refusals = refusals
        # The requests whose headers are complete, the oldest first.
        self._unanswered: deque[RequestResponseCycle] = deque()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the memory and the timers of the connection after any end.

        uvicorn cancels the timer of an idle connection only after a clean end. After a reset the
        timer would keep the connection, with its request, for 620 s. If a connection has several
        requests, uvicorn informs only the last one of the end.
        """
        super().connection_lost(exc)
        self._stop_timer()
        self._stop_keep_alive()
        for cycle in self._unanswered:
            _disconnect(cycle)
        self._unanswered.clear()
        self.pipeline.clear()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """Pass data to the parser. Headers are passed only when they are complete."""
        if self._farewell is not None:
            return
        self._stop_keep_alive()
        if not self._in_body:
            self._start_timer()
            start = max(0, len(self._head) - 3)
            data, self._head = self._head + data, b""
            end = _END_OF_HEADERS.search(data, start)
            size = end.start() if end else len(data)
            if size > MAX_HEADER_BYTES:
                self._refuse(431, f"the headers are larger than {MAX_HEADER_BYTES:,} bytes")
                return
            for beginning, reason in _OTHERS.items():
                if data.startswith(beginning):
                    self._refuse(400, reason)
                    return
            # The parser rejects at once what is not HTTP, such as the beginning of TLS.
            if end is None and data[:1].isalpha():
                self._head = data
                return
        try:
            self._feed(data)
        except httptools.HttpParserCallbackError:
            self._refuse(400, "the URL of the request is not valid")
        except httptools.HttpParserError as error:
            problem = f"the request is not valid HTTP/1.1: {error}"
            self._refuse(400, _NO_HTTP_2 if str(error) == _HTTP_2 else problem)

    def _feed(self, data: bytes) -> None:
        """Pass data to the parser, and headers with `Upgrade` to a new one, without this header."""
        rest = memoryview(data)
        while True:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as found:
                if not self._without_upgrade:  # the parser cannot continue after CONNECT
                    self._end()
                    return
                [end] = found.args
            rest, head = rest[end:], self._without_upgrade
            self._without_upgrade = b""
            # With `Connection: close` the parser has ended, and would skip everything. The new one
            # skips only what follows the request, like that of uvicorn.
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(head)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer the complete requests of a client that closes its sending side (RFC 9112, 9.6).

        Returns:
          Whether the connection stays open until these answers are sent.
        """
        if self._farewell is None:
            self._end()
        return bool(self._unanswered)

    def on_headers_complete(self) -> None:
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != _CONNECT:
            version = self.parser.get_http_version().encode()
            lines = [b"%b: %b" % header for header in self.headers if header[0] != _UPGRADE]
            head = [b"%b %b HTTP/%b" % (method, self.url, version), *lines]
            self._without_upgrade = b"\r\n".join([*head, b"", b""])
            return
        super().on_headers_complete()
        self._in_body = True
        self._stop_timer()
        self._unanswered.append(self.cycle)
        if self._ending:
            self.cycle.keep_alive = False
        # A client of HTTP/1.0 would read `100 Continue` as the answer (RFC 9110, 10.1.1).
        if self.scope["http_version"] == "1.0":
            self.cycle.waiting_for_100_continue = False

    def on_message_complete(self) -> None:
        if self._without_upgrade:
            return
        self._in_body = False
        super().on_message_complete()
        if self.cycle.response_complete:
            # The body has arrived after the answer. uvicorn starts no timer in this case, so the
            # idle connection would never end.
            self._stop_timer()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        super().on_response_complete()
        if self._unanswered or self.transport.is_closing():
            return
        if self._farewell is not None:
            self._close(self._farewell)
        elif self._in_body:
            self._start_timer()

    def shutdown(self) -> None:
        """Close the connection after its request, or after a moment if it is idle."""
        self._ending = True
        self.loop.call_later(_LAST_REQUEST_SECONDS, super().shutdown)

    def _refuse(self, status: int, reason: str) -> None:
        """Answer a request that is not valid, after the requests before it, and close.

        Args:
          status: the status of the answer.
          reason: the error in the answer, whose first letter becomes a capital.
        """
        content = orjson.dumps({"error": f"{reason[0].upper()}{reason[1:]}"})
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(content)}\r\n"
            "connection: close\r\n\r\n"
        )
        client = f"{self.client[0]}:{self.client[1]}" if self.client else "an unknown address"
        self._refusals.add(client, status, reason)
        self._end(head.encode() + content)

    def _end(self, farewell: bytes = b"") -> None:
        """Close the connection after the answers to the complete requests.

        Args:
          farewell: bytes to send after these answers.
        """
        self._stop_timer()
        if self._in_body and self._unanswered:
            # The rest of the newest request will never arrive.
            _disconnect(self._unanswered.pop())
            if self.pipeline:
                self.pipeline.popleft()
        self._farewell = farewell
        if not self._unanswered:
            self._close(farewell)

    def _close(self, farewell: bytes) -> None:
        self.transport.write(farewell)
        self.transport.close()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._read_seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_keep_alive(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Inform the application that the client of a request has closed its connection."""
    cycle.disconnected = True
    cycle.message_event.set()
