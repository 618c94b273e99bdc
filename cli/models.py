"""`amazon-reviews models`: list the pushed models."""

from __future__ import annotations

import time

from cli.options import ConfigOption, SetOption, make_app

app = make_app()

_COLUMNS = ("version", "pushed", "accuracy", "95 % interval", "run", "state")


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
        from components.evaluator.metrics import wilson
        from platforms.models import list_models

        found = list_models(settings)
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for model, run in found:
        accuracy = interval = "–"
        if run and run.outcome:
            share, tested = run.outcome["accuracy"], run.outcome["lines"]["examples_test"]
            accuracy = f"{share:.4f}"
            interval = "{:.4f} to {:.4f}".format(*wilson(round(share * tested), tested))
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(model.pushed))
        name = run.id if run else "–"
        table.add_row(model.name, day, accuracy, interval, name, model.state)
    print_table(table)
