"""`amazon-reviews run`."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from cli.options import ConfigOption, SetOption, settings_options

app = typer.Typer()


@app.command(epilog="Example: amazon-reviews run --config mine.yaml --set training.epochs=3")
def run(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Run the pipeline on this machine and show its progress.

    If nothing has changed since the last run, its result is shown again.

    Exit code 0: a model was pushed, or blessed under push.destination: none. 2: settings or input
    are wrong, or another run uses paths.root. 3: the model was not blessed or failed the serving
    check. 130: Ctrl-C or SIGTERM. 1: anything else.
    """
    from rich.text import Text

    from cli import monitor, summary
    from cli.console import out
    from pipeline import nodes
    from pipeline.config import load_config, log_folder
    from platforms.checks import check_target
    from platforms.local import places, unchanged

    settings = load_config(config, overrides or ())
    check_target(settings, "local")
    places.make_folders(settings)
    lock = places.lock_root(settings.paths.root)
    options = settings_options(config, overrides)
    last = unchanged.find_unchanged(settings)
    if last:
        text = f"  unchanged since the run {last.id}"
        out.print(Text.assemble((settings.name, "bold"), text), soft_wrap=True)
        watched = monitor.Watched(outcome=last.outcome)
        raise typer.Exit(summary.show(out, settings, watched, options=options))
    log = Path(log_folder(settings)) / time.strftime("%Y%m%d-%H%M%S.log")
    out.print(Text.assemble((settings.name, "bold"), f"  log: {log}"), soft_wrap=True)
    command = monitor.local_runner(config, overrides or ())
    watched = monitor.run_watched(out, log, command, nodes.node_ids(settings), lock)
    raise typer.Exit(summary.show(out, settings, watched, log, options))
