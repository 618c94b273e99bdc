"""Entry point of the `amazon-reviews` command."""

from __future__ import annotations

import io
import sys
import warnings

from core import exit_codes


def main() -> None:
    """Run the command; the exit codes are those of `core.exit_codes`."""
    # Not every output can encode each character of a path or a message, such as `…` in ASCII. Such
    # a character must not end a run. Python does the same for standard error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # Google's libraries warn about old Python versions, before the only line of an error.
    warnings.filterwarnings("ignore", r"\s*You are using a .*Python version", FutureWarning)
    try:
        # This import takes time, in which Ctrl-C would otherwise print a traceback.
        from cli.app import app

        app()
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
