"""Bodies of requests, read within limits of size, memory and time."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import anyio

from serving.rest.errors import ApiError, invalid, overloaded, too_large

_BODIES_IN_MEMORY = 16
"""Number of bodies of the greatest size that fit into the memory for requests; the server refuses
further bodies (HTTP 429)."""
_BODIES_TO_DISCARD = 16
"""Number of bodies of the greatest size: the server reads and discards at most that many bytes
before it answers with HTTP 413. A client that still sends would otherwise get a broken connection
instead of the answer."""


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


class Bodies:
    """Reads the bodies of the requests of one server."""

    def __init__(self, max_bytes: int, timeout: float):
        """Construct the reader.

        Args:
          max_bytes: size of the greatest body.
          timeout: seconds in which a body must arrive.
        """
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._held = 0

    async def read(self, headers: Iterable[tuple[bytes, bytes]], receive: Any) -> bytes:
        """Return the body of a request.

        Args:
          headers: headers of the request, with lower-case names.
          receive: ASGI's `receive`.

        Raises:
          ApiError: the body is too large (413), too slow (408) or encoded (400), or the server has
            no memory for it (429).
          ClientGoneError: the client closed the connection.
        """
        length, expects = 0, False
        for name, value in headers:
            if name == b"content-length":
                length = int(value)
            elif name == b"expect":
                expects = True
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise invalid(
                    "Content-Encoding is not supported: send the JSON without compression"
                )
        if length > self._max_bytes and expects:
            raise self._too_large()
        body: bytes | None = None
        with anyio.move_on_after(self._timeout):
            body = await self._receive(length, receive)
        if body is None:
            raise ApiError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The body did not arrive within {self._timeout:g} s",
                {"connection": "close"},
            )
        return body

    async def _receive(self, length: int, receive: Any) -> bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body: bytes = message["body"]
        if not message["more_body"]:
            if len(body) > self._max_bytes:
                raise self._too_large()
            return body
        chunks, size, held = [body], len(body), 0
        try:
            while message["more_body"]:
                if max(length, size) <= self._max_bytes:
                    if self._held + size - held > _BODIES_IN_MEMORY * self._max_bytes:
                        error = overloaded("Too many large requests at once; retry later")
                        error.headers["connection"] = "close"
                        raise error
                    self._held += size - held
                    held = size
                else:
                    chunks.clear()
                    if size > _BODIES_TO_DISCARD * self._max_bytes:
                        break
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                chunks.append(message["body"])
                size += len(message["body"])
        finally:
            self._held -= held
        if max(length, size) > self._max_bytes:
            raise self._too_large()
        return b"".join(chunks)

    def _too_large(self) -> ApiError:
        error = too_large(f"The body is larger than {self._max_bytes:,} bytes")
        error.headers["connection"] = "close"
        return error
