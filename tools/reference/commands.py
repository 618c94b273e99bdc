"""The page of the commands, from the Typer app."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from tools.reference.declared import NOTICE, cell

_COMMANDS = """\
# Commands

`amazon-reviews --help` lists the commands, `amazon-reviews COMMAND --help` the options of one. The
[exit codes](exit-codes.md) are the same for all of them.
"""


def commands_page() -> str:
    """Return the page of all commands."""
    from cli.app import app

    group: Any = typer.main.get_command(app)
    commands = {name: group.get_command(None, name) for name in group.list_commands(None)}
    return "\n".join([NOTICE + _COMMANDS, *_commands(commands, "amazon-reviews")])


def _commands(group: Any, path: str) -> Iterator[str]:
    """Yield the section of each command, and of the subcommands of each group.

    A group has a section of its own only if it does something without a subcommand.
    """
    for name, command in group.items():
        full = f"{path} {name}"
        subcommands = getattr(command, "commands", {})
        if not subcommands or command.invoke_without_command:
            yield from _section(command, full)
        yield from _commands(subcommands, full)


def _section(command: Any, full: str) -> Iterator[str]:
    """Yield the parts of the section of a command, whose name with that of its groups is `full`."""
    hints = get_type_hints(inspect.unwrap(command.callback))
    # The options that every command has come last.
    parameters = [item for item in command.params if item.name != "help"]
    usage = " ".join([full, *(_usage(item, hints) for item in parameters)])
    about = "\n\n".join(cell(text) for text in inspect.cleandoc(command.help).split("\n\n"))
    rows = [f"| {_names(item, hints)} | {cell(item.help)} |\n" for item in parameters]
    yield f"## `{full}`\n\n```\n{usage}\n```\n\n{about}\n"
    yield f"| argument | meaning |\n|---|---|\n{''.join(rows)}"


def _usage(parameter: Any, hints: dict[str, Any]) -> str:
    value = _value(parameter, hints)
    if parameter.param_type_name == "argument":
        return f"[{value}]..." if parameter.nargs == -1 else value
    words = f"{parameter.opts[0]} {value}".strip()
    repeated = "..." if parameter.multiple else ""
    return words if parameter.required else f"[{words}]{repeated}"


def _names(parameter: Any, hints: dict[str, Any]) -> str:
    value = _value(parameter, hints)
    if parameter.param_type_name == "argument":
        return f"`{value}`"
    return ", ".join(f"`{f'{name} {value}'.strip()}`" for name in parameter.opts).replace(
        "|", "\\|"
    )


def _value(parameter: Any, hints: dict[str, Any]) -> str:
    """Return how the value of a parameter is written in a usage line; nothing for a flag."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    if parameter.metavar:
        return str(parameter.metavar)
    if getattr(parameter, "is_flag", False):
        return ""
    hint = hints[parameter.name]
    kinds = [item for item in get_args(hint) or [hint] if item is not type(None)]
    choices = [name for kind in kinds for name in get_args(kind)]
    if get_origin(hint) is Literal:
        choices = list(get_args(hint))
    return "|".join(choices) or ("FILE" if Path in kinds else "VALUE")
