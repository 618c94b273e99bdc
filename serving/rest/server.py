"""The process of the REST server, and its end after SIGTERM.

`python -m serving.rest.server FOLDER` serves the models in FOLDER on a free port of this machine,
for the check of a candidate.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial

import uvicorn

from core.errors import UserError
from serving.rest.app import create_app
from serving.rest.limits import Limits
from serving.rest.listener import listen, open_socket, url
from serving.rest.metrics import Metrics
from serving.rest.protocol import LimitedProtocol, RefusalLog
from serving.rest.sample import RequestSample
from serving.rest.settings import Server
from serving.rest.versions import ServedVersions

_KEEP_ALIVE_SECONDS = 620
"""Seconds after which the server closes an idle connection. A proxy must close it before the
server, or it answers requests with HTTP 502: nginx and AWS close it after 60 s, Google's load
balancer after 600 s."""
_GRACE_SECONDS = 30
"""Seconds after SIGTERM in which accepted requests must be answered."""
_SWITCH_SECONDS = 0.0005
"""Switch interval of Python's threads. With the default, 5 ms, an answer of the model waits while
the event loop parses requests."""


def serve(
    folder: str,
    listener: socket.socket,
    ready: Callable[[str, int], object],
    limits: Limits | None = None,
    sample: RequestSample | None = None,
) -> None:
    """Serve the models in `folder` until a signal, and then answer the accepted requests.

    The signals are SIGTERM, SIGINT and SIGHUP.

    Args:
      folder: the serving folder or its URL.
      listener: the socket that `open_socket` returned.
      ready: called with the URL and the version once the server accepts requests.
      limits: by default those of `Limits`.
      sample: the sample of the texts of requests; None: none is kept.

    Raises:
      NoModelError: the folder contains no model.
      ServerError: the folder contains no model that can be loaded.
      ConfigError: another process listens on the address by now.
      OSError: the folder cannot be read.
    """
    metrics = Metrics()
    # A garbage collection pauses every request. After this call it skips the modules, which are
    # most of the objects. The models are loaded later, so that a replaced model is collected.
    gc.freeze()
    versions = ServedVersions(folder, metrics)
    config = uvicorn_config(versions, metrics, limits or Limits(), sample)
    server = uvicorn.Server(config)

    def end(*_: object) -> None:
        server.should_exit = True

    # SIGTERM may arrive before uvicorn handles it. uvicorn also raises the signal again at its end,
    # but SIGTERM is the normal end of a server.
    signal.signal(signal.SIGTERM, end)
    # A terminal that is closed sends SIGHUP. `nohup` ignores it.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, end)
    _allow_open_files()
    sys.setswitchinterval(_SWITCH_SECONDS)
    listen(listener, config.backlog)
    ready(url(*listener.getsockname()[:2]), versions.current.version)
    server.run(sockets=[listener])


def uvicorn_config(
    versions: ServedVersions,
    metrics: Metrics,
    limits: Limits,
    sample: RequestSample | None = None,
) -> uvicorn.Config:
    """Return the configuration with which uvicorn runs the application.

    Args:
      versions: the versions in the serving folder.
      metrics: the metrics that are updated and served.
      limits: the limits of requests.
      sample: the sample of the texts of requests; None: none is kept.
    """
    return uvicorn.Config(
        create_app(versions, metrics, limits, sample),
        http=partial(LimitedProtocol, limits.read_seconds, RefusalLog()),  # type: ignore[arg-type]
        loop="uvloop",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def _allow_open_files() -> None:
    """Allow as many open files as the system permits this process.

    Each connection is an open file. Most systems allow 1,024, unless a process sets a higher
    limit, and further connections would be closed without an answer.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The hard limit may exceed fs.nr_open, if that was lowered later. Then no limit can be set.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Serve the folder in the first argument; print a JSON object with `url` and `load_seconds`.

    Raises:
      SystemExit: no model can be served. The message is on standard error.
    """
    logging.basicConfig()
    start = time.perf_counter()

    def ready(address: str, _: int) -> None:
        state = {"url": address, "load_seconds": time.perf_counter() - start}
        print(json.dumps(state), flush=True)

    try:
        serve(sys.argv[1], open_socket(Server(port=0)), ready)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
