"""`amazon-reviews data fetch`."""

from __future__ import annotations

from cli.options import ConfigOption, SetOption, make_app, settings_options

app = make_app("Manage the reviews that a pipeline reads.")


@app.callback()
def _data() -> None:
    """Make Typer build a group although there is one command."""


@app.command()
def fetch(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Download the Kaggle set (4,000,000 reviews, 492 MB) into data.input_base.

    Exit code 2: data.input_base is not set or not writable. 1: the download failed.
    """
    from cli import kaggle
    from cli.console import print_line
    from core.errors import ConfigError
    from pipeline.config import load_config

    base = load_config(config, overrides or ()).data.input_base
    if base is None:
        raise ConfigError(
            "data.input_base: not set, so the download has no target folder. Set it, or run "
            "`amazon-reviews data fetch --config amazon`"
        )
    files = kaggle.fetch(base, report=print_line)
    options = settings_options(config, overrides)
    print_line(f"{len(files)} files in {base}; next: amazon-reviews run{options}")
