"""Entry point of the `amazon-reviews` command."""

from __future__ import annotations

import sys

from core import exit_codes


def main() -> None:
    """Run the command; the exit codes are those of `core.exit_codes`."""
    try:
        # This import takes time, in which Ctrl-C would otherwise print a traceback.
        from cli.app import app

        app()
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
