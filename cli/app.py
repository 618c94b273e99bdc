"""The commands of `amazon-reviews`. The module of a command is imported when the command is called.

A module has a Typer `app` with one command, with several, or with subcommands of one.
"""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from core import exit_codes, processes
from core.errors import UserError

COMMANDS = {
    "run": "cli.run",
    "predict": "cli.predict",
    "report": "cli.report",
    "runs": "cli.runs",
    "models": "cli.models",
    "rollback": "cli.models",
    "serve": "cli.serve",
    "compile": "cli.compile",
    "submit": "cli.submit",
    "image": "cli.image",
    "data": "cli.data",
}
"""Command -> its module."""


class Commands(TyperGroup):
    def __init__(self, **arguments: Any):
        """Name the commands, for `--help` and for the suggestion after a wrong name."""
        super().__init__(**arguments)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the module of a command and return the command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        of_module = typer.main.get_command(import_module(COMMANDS[cmd_name]).app)
        command = getattr(of_module, "commands", {}).get(cmd_name, of_module)
        command.name = cmd_name
        for one in (command, *getattr(command, "commands", {}).values()):
            # Typer keeps the line breaks of a docstring, which fit one width only.
            paragraphs = (one.help or "").split("\n\n")
            one.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with the code of a UserError, and with 130 after Ctrl-C."""
        processes.ignore_other_jobs()
        try:
            return super().invoke(ctx)
        except UserError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            sys.exit(exit_codes.INTERRUPTED)


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train, evaluate and push a sentiment model from raw Amazon reviews.",
    epilog="Example: amazon-reviews run --set training.epochs=3",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"amazon-reviews {metadata.version('amazon-reviews')}")
        raise typer.Exit


@app.callback()
def _commands(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Make Typer build a group although no command is registered yet."""
