"""`amazon-reviews serve`."""

from __future__ import annotations

import contextlib
import logging
from typing import Annotated

import typer

from cli.options import ConfigOption, SetOption
from core.errors import visible

app = typer.Typer()


@app.command(epilog="Example: amazon-reviews serve --port 8502")
def serve(
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="TCP port \\[default: the setting server.port]."
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Serve the last pushed model with TensorFlow Serving's REST API, and a page to try it.

    A newly pushed model replaces the old one while the server answers requests. After SIGTERM or
    Ctrl-C the server answers the accepted requests and ends. Exit code 2: there is no model, or
    the address is in use.
    """
    from cli.console import print_line, quiet_tensorflow, silent_stderr
    from cli.models import last_pushed_model
    from core.processes import large_imports
    from pipeline.config import load_config
    from serving.rest.announced import announced
    from serving.rest.listener import open_socket

    settings = load_config(config, overrides or ())
    folder = settings.paths.serving
    address = settings.server if port is None else settings.server.model_copy(update={"port": port})
    listener = open_socket(address)
    quiet_tensorflow()
    # TensorFlow logs while it is imported, before it can be configured.
    with silent_stderr():
        last_pushed_model(settings)
        with large_imports():
            from serving.rest.sample import RequestSample
            from serving.rest.server import serve as serve_models
    sample = None
    if address.sample_folder:
        sample = RequestSample(address, settings.data.columns)
        sample.prepare()
    _log_to_stderr()

    def ready(url: str, version: int) -> None:
        running.enter_context(announced(url, folder))
        print_line(f"version {version} of {folder}")
        print_line(f"try it at {url}/ (Ctrl-C ends the server)")

    with contextlib.ExitStack() as running:
        serve_models(folder, listener, ready, sample=sample)


class VisibleFormatter(logging.Formatter):
    """A formatter of log lines, in which control characters are escaped.

    An error of TensorFlow may contain the text of a client.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return visible(super().format(record))


def _log_to_stderr() -> None:
    """Log changes of the version, and problems of the server and its libraries, but no requests."""
    # The root logger has a handler of TensorFlow, whose lines have another form.
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("serving.rest").setLevel(logging.INFO)
    # TensorFlow warns that sessions are deprecated.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
