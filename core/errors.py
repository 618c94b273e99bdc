"""The errors that a user can correct. Each has a message of one line and an exit code."""

from __future__ import annotations

from core import exit_codes


class UserError(Exception):
    """An error whose message is all that a user needs.

    The command line prints the message instead of a traceback and ends with `exit_code`.

    Attributes:
      exit_code: one of `core.exit_codes`.
    """

    exit_code = exit_codes.FAILED

    def __init__(self, message: str) -> None:
        # Parts of the message may come from a user or a server, line breaks included.
        super().__init__(" ".join(message.split()))


class ConfigError(UserError, ValueError):
    """A setting is wrong. The message names its key and what would be right."""

    exit_code = exit_codes.BAD_INPUT


class InputError(UserError, ValueError):
    """The input does not fit the settings. The message names the file or folder and the remedy."""

    exit_code = exit_codes.BAD_INPUT


class ServerError(UserError):
    """A server refused a request, or it cannot be reached."""
