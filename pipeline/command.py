"""Entry point of the `amazon-reviews` command: Ctrl-C ends it with 130 from the first import on."""

from __future__ import annotations

import sys

from pipeline import exit_codes


def main() -> None:
    """Run the command; the exit codes are those of `pipeline.exit_codes`."""
    try:
        # Imports for a second, in which Ctrl-C would otherwise print a traceback.
        from pipeline import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
