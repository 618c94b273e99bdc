"""The limits of a server, and the bodies of requests, which are read within these limits."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request

_BODIES_IN_MEMORY = 16
"""Number of bodies of the greatest size that fit into the memory for requests."""
_CLOSE = {"connection": "close"}
_COMPRESSED = (
    "compressed requests are not supported; send the body without Content-Encoding, and without "
    "compression in Transfer-Encoding"
)
_GZIP = b"\x1f\x8b"
"""The first bytes of gzip. Some clients compress a body and send no Content-Encoding."""
_PLAIN = {
    b"content-encoding": (b"", b"identity"),
    # HTTP/1.1 may also compress a body for the transfer alone, as in `gzip, chunked`.
    b"transfer-encoding": (b"chunked", b"identity, chunked"),
}
"""Header -> its values for a body that is not compressed."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    body_bytes: int = 4 * 2**20
    """Greatest size of the body of a request in bytes. A larger body is answered with HTTP 413."""
    reviews: int = 1024
    """Greatest number of reviews in a request and in a call of the model. A request with more
    reviews is answered with HTTP 413."""
    queue: int = 4096
    """Greatest number of accepted reviews without an answer. A request that exceeds this number is
    answered with HTTP 429."""
    read_seconds: float = 10.0
    """Timeout of the headers of a request, after which the connection is closed; and timeout of the
    body of a request, which is then answered with HTTP 408."""
    poll_seconds: float = 1.0
    """Seconds between two polls of the serving folder for a new model."""


class Bodies:
    """The bodies of all requests that are being read or answered, with their memory.

    Args:
      limits: the limits of a request.
    """

    def __init__(self, limits: Limits):
        self._limits = limits
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body of a request, whose memory counts until the end of the context.

        The rest of a body that is too large is read and discarded. Otherwise the connection of a
        client that still sends would break before the answer arrives.

        Raises:
          HTTPException: the body is compressed (415), too slow (408) or too large (413), or the
            bodies of all requests together are too large (429).
        """
        for name, value in request.scope["headers"]:
            plain = _PLAIN.get(name)
            if plain is not None and value.strip().lower() not in plain:
                raise HTTPException(415, _COMPRESSED, {"accept-encoding": "identity"})
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
            if body.startswith(_GZIP):
                raise HTTPException(415, "the body is compressed with gzip; send it uncompressed")
            yield bytes(body)
        finally:
            self._held -= len(body)
