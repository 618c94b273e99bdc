"""The commands of `amazon-reviews`; each imports what it requires when it is called."""

from __future__ import annotations

import os
import re
import shlex
import sys
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from cli import compile, data, image, init, models, predict, run, runs, serve, watch
from core import exit_codes, processes
from core.errors import ConfigError, UserError, visible
from core.overrides import OPTION
from core.values import check_values


class _Commands(TyperGroup):
    """The group of all commands, which converts errors to exit codes."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the options before the command; return the other arguments.

        Raises:
          SystemExit: --install-completion cannot write the files of the shell.
          OSError: the help cannot be printed.
          click.UsageError: an option is unknown.
        """
        try:
            return super().parse_args(ctx, args)
        except OSError as error:
            if error.filename is None:
                raise
            problem = f"{error.filename} cannot be written: {error.strerror}"
            print(f"--install-completion: {visible(problem)}", file=sys.stderr)
            sys.exit(exit_codes.BAD_INPUT)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with the code of a UserError, and with 130 after Ctrl-C.

        Raises:
          SystemExit: the command ended with an exit code.
          Exception: an error that a user cannot correct.
        """
        processes.set_environment()
        try:
            _check_working_directory()
            return super().invoke(ctx)
        except UserError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            sys.exit(exit_codes.INTERRUPTED)


class _Command(TyperCommand):
    """A command whose options and arguments require a value that is not empty."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments of the command; return those that no parameter takes.

        Raises:
          ConfigError: the value of an option or argument is empty, unless it is a text, or the
            value of --config or --set is an argument.
          typer.BadParameter: an option or argument has a wrong value.
          click.UsageError: an option is unknown or lacks its value.
        """
        # Typer would convert an empty path to the current folder.
        words, further, _ = self.make_parser(ctx).parse_args(list(args))
        for word in further:
            option = _option_of(word)
            if option:
                raise ConfigError(f"{word} is no argument; write {option} {shlex.quote(word)}")
        for parameter in self.get_params(ctx):
            is_option = parameter.param_type_name == "option"
            name = max(parameter.opts, key=len) if is_option else parameter.metavar or ""
            if name == predict.TEXT:
                continue  # the command reports which of the texts are blank
            found = words.get(parameter.name)
            for value in found if isinstance(found, list | tuple) else [found]:
                check_values(value, name)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            from core.settings import in_own_words

            # Typer passes on the message of pydantic.
            error.message = in_own_words(error.message)
            raise


def _option_of(word: str) -> str:
    """Return the option whose value an unexpected argument is; empty if it is none."""
    from pipeline.config import PRESETS

    if re.fullmatch(r"[a-z_.]+=.*", word, re.DOTALL):
        return OPTION
    is_preset = word in {preset.stem for preset in PRESETS.glob("*.yaml")}
    return "--config" if is_preset or word.endswith((".yaml", ".yml")) else ""


def _check_working_directory() -> None:
    """Check that the working directory exists, to which the paths of the settings are relative.

    Raises:
      ConfigError: it was removed, as by another terminal.
    """
    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(
            f"the working directory cannot be used ({error.strerror}), perhaps because it was "
            "removed; change to another one with cd"
        ) from None


app = typer.Typer(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train, evaluate and push a text classifier: sentiment, stars, topics or other labels.",
    epilog="Example: amazon-reviews run --set training.epochs=3",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Typer would keep the line breaks of a docstring, which fit only one width of a terminal.
    rich_markup_mode="markdown",
)
for module in (init, run, predict, runs, models, watch, serve, compile, image, data):
    app.add_typer(module.app)
    # `runs` is a command, and the group of `runs compare`.
    inner = [group.typer_instance for group in module.app.registered_groups]
    for group in filter(None, [module.app, *inner]):
        for command in group.registered_commands:
            command.cls = _Command


def _value_in_help(parameter: TyperOption | TyperArgument, ctx: Any) -> str:
    """Return the placeholder of an option's value in the help; empty for a flag or an argument."""
    if isinstance(parameter, TyperArgument) or parameter.is_flag:
        return ""
    return parameter.metavar or parameter.display_type(ctx).strip("<>")


# Typer would show types of Python, such as `<bool>` for --help and `<list[str]>` for texts.
TyperOption.display_type_rich = _value_in_help  # type: ignore[assignment, method-assign]
TyperArgument.display_type_rich = _value_in_help  # type: ignore[assignment, method-assign]


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"amazon-reviews {metadata.version('amazon-reviews')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    early: Annotated[list[str] | None, typer.Option("--config", "-c", OPTION, hidden=True)] = None,
) -> None:
    """Define the options that precede a command.

    Raises:
      ConfigError: an option of a command precedes it.
    """
    if early:
        raise ConfigError(
            f"{early[0]}: --config and {OPTION} follow the command, such as "
            "`amazon-reviews run --config FILE`"
        )
