"""Entry point of the `amazon-reviews` command."""

from __future__ import annotations

import io
import os
import re
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
    except Exception as error:
        # The error is one of Python, of TensorFlow or of SQLite.
        if not re.search("No space left on device|Disk quota exceeded|disk is full", str(error)):
            raise
        # Python would try to write the rest of its buffer at its end, and report that error too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"the disk is full: {' '.join(str(error).split())}"[:500], file=sys.stderr)
        sys.exit(exit_codes.FAILED)
