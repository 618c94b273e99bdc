"""`amazon-reviews models` and `amazon-reviews rollback`: the pushed models, and the served one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ConfigOption, SetOption
from core.storage import is_bucket

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig

app = typer.Typer()

_COLUMNS = ("version", "also served as", "pushed", "accuracy", "95 % interval", "run", "state")


@app.command(epilog="Example: amazon-reviews models")
def models(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """List the pushed models in paths.serving, the newest first.

    A rollback pushes a copy of a model as a new version, which the servers then report. The column
    "also served as" contains these versions. A server cannot load a "damaged" model.

    Exit code 2: there is no pushed model.
    """
    from rich.table import Table

    from cli.console import print_table, silent_stderr
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    with silent_stderr():
        from platforms.models import list_models

        found = list_models(settings)
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for model, run in found:
        accuracy = interval = "–"
        if run and run.outcome:
            accuracy = f"{run.outcome.accuracy:.4f}"
            if run.outcome.accuracy_interval:
                interval = "{:.4f} to {:.4f}".format(*run.outcome.accuracy_interval)
        day = "–"
        if model.pushed is not None:
            day = time.strftime("%Y-%m-%d %H:%M", time.localtime(model.pushed))
        name = run.id if run else "–"
        copies = ", ".join(model.copies)
        table.add_row(model.name, copies, day, accuracy, interval, name, model.state)
    print_table(table)


@app.command(epilog="Example: amazon-reviews rollback 1764150000")
def rollback(
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION",
            help="A version in the first two columns of `amazon-reviews models` "
            "\\[default: the newest version before the served one that can be loaded].",
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Serve an earlier pushed model again, or return to a later one.

    All servers of paths.serving load the model like a new one, without a failed request. Later
    runs do not push the replaced model again. Exit code 2: there is no such version, or it cannot
    be loaded.
    """
    from cli.console import print_line, silent_stderr
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    with silent_stderr():
        from platforms.served_model import roll_back

        for line in roll_back(settings, version):
            print_line(line)


def last_pushed_model(config: PipelineConfig) -> str:
    """Return the folder of the last complete model in `paths.serving`.

    Raises:
      InputError: there is no complete model.
      ConfigError: the folder cannot be read, its bucket requires credentials, or it is on a volume
        that this machine does not mount.
    """
    from core.errors import ConfigError
    from pipeline.destinations import check_mounted
    from platforms.google_credentials import find_credentials
    from serving.versions import newest_complete

    serving = config.paths.serving
    check_mounted(config)
    if is_bucket(serving):
        find_credentials("paths.serving", serving)
    try:
        return newest_complete(serving)
    except OSError as error:
        raise ConfigError(f"paths.serving: {serving} cannot be read: {error}") from None
