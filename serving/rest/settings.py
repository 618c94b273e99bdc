"""The settings of `amazon-reviews serve`, and the socket for the address in them."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from core.errors import ConfigError
from core.settings import LocalPath, Section

MODEL_NAME = "amazon_reviews"
"""The name of the model in the URLs."""
VERSION_HEADER = "x-model-version"
"""The header of an answer with the version of its model; TensorFlow Serving has no such header."""
_NO_ADDRESS_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""The errors if a machine has no such address: /etc/hosts of a container often has `::1 localhost`,
although its network has no IPv6."""


class Server(Section):
    """The REST server of the pushed models, `amazon-reviews serve`."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; the default is reachable from this machine only."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8501
    """TCP port; 0: any free port, which the command prints."""
    sample_folder: LocalPath | None = None
    """Local folder in which the server keeps a random sample of the texts of requests, for
    `amazon-reviews watch`; None: it keeps none. Only its owner can read the files."""
    sample_texts: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Maximum number of texts of a day (UTC) that a server keeps."""
    sample_days: Annotated[int, Field(ge=1)] = 30
    """Number of days, the present one included, after which the server removes their texts."""


def url(host: str, port: int) -> str:
    """Return the URL of a server without a path, with brackets around an IPv6 address."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def open_socket(settings: Server) -> socket.socket:
    """Return a socket that is bound to the address in the settings, and does not listen yet.

    A name may have several addresses, such as those of IPv6 and IPv4. The first one is used that
    this machine has.

    Raises:
      ConfigError: the address is in use, or is not an address of this machine.
    """
    host, port = settings.host, settings.port
    with _named(host, port):
        return _bound_to_one(host, port)


def _bound_to_one(host: str, port: int) -> socket.socket:
    """Return a socket for the first address of a host that this machine has.

    Raises:
      OSError: the host has no address here, or the address is in use.
      UnicodeError: the host is no name, such as `a..b`.
    """
    *others, last = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for found in others:
        try:
            return _bound(*found)
        except OSError as error:
            if error.errno not in _NO_ADDRESS_HERE:
                raise
    return _bound(*last)


def _bound(family: int, kind: int, protocol: int, _: str, address: Any) -> socket.socket:
    """Return a socket for an address that `getaddrinfo` returned.

    Raises:
      OSError: it cannot be bound.
    """
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    return listener


def listen(listener: socket.socket, backlog: int) -> None:
    """Accept connections on a socket of `open_socket`.

    Args:
      listener: the socket.
      backlog: the number of connections that may wait until they are accepted.

    Raises:
      ConfigError: another process listens on the address. Several processes can bind to an address
        on which none of them listens yet.
    """
    with _named(*listener.getsockname()[:2]):
        listener.listen(backlog)


@contextlib.contextmanager
def _named(host: str, port: int) -> Iterator[None]:
    """Name the address in the message of an error in the context.

    Raises:
      ConfigError: an error occurred in the context.
    """
    try:
        yield
    # Python encodes the host name, and raises UnicodeError for a name such as `a..b`.
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"server.host, server.port: {host}:{port} cannot be used: "
            f"{getattr(error, 'strerror', error)}. Choose another host or port"
        ) from None
