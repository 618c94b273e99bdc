"""The socket of the server, for the address in its settings."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Any

from core.errors import ConfigError
from serving.rest.settings import Server

_NO_ADDRESS_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""The errors if a machine has no such address: /etc/hosts of a container often has `::1 localhost`,
although its network has no IPv6."""


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
