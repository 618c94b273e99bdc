"""`amazon-reviews models`: list the pushed models."""

from __future__ import annotations

import time

from cli.options import ConfigOption, SetOption, make_app

app = make_app()

_COLUMNS = ("version", "pushed", "accuracy", "95 % interval", "run", "alias", "state")


@app.command(epilog="Example: amazon-reviews models")
def models(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """List the pushed models in paths.serving, the newest first.

    Exit code 2: there is no pushed model.
    """
    from rich.table import Table

    from cli.console import print_table, silent_stderr
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    with silent_stderr():
        from platforms.models import pushed_models

        found = pushed_models(settings)
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for model in found:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(model.pushed))
        accuracy = "–" if model.accuracy is None else f"{model.accuracy:.4f}"
        interval = "–" if model.interval is None else "{:.4f} to {:.4f}".format(*model.interval)
        table.add_row(
            model.version, day, accuracy, interval, model.run or "–", model.alias, model.state
        )
    print_table(table)
