"""Entry point of the `amazon-reviews` command."""

from __future__ import annotations

import io
import os
import sys
import warnings

from core import exit_codes
from core.errors import disk_is_full, visible

_NO_TEMPORARY_FOLDER = (
    "no folder for temporary files can be written, such as /tmp. Free space there, or set the "
    "environment variable TMPDIR to another folder; in a container with a read-only file system "
    "mount a volume at /tmp"
)


def main() -> None:
    """Run the command in `sys.argv`.

    Raises:
      SystemExit: the command has ended, with a code of `core.exit_codes`.
      Exception: an error that a user cannot correct.
    """
    # An output in ASCII cannot encode every character of a path or a message, such as `…`. Such a
    # character must not end a run. Python escapes it on standard error by default.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # Google's libraries warn about old Python versions on standard error. The message of an error
    # must be the only line there.
    warnings.filterwarnings("ignore", r"\s*You are using a .*Python version", FutureWarning)
    try:
        # The import takes a while, and after Ctrl-C no traceback may be printed.
        from cli.app import app

        app()
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
    except Exception as error:
        if "No usable temporary directory" in str(error):
            print(_NO_TEMPORARY_FOLDER, file=sys.stderr)
            sys.exit(exit_codes.BAD_INPUT)
        if not disk_is_full(error):
            raise
        # Python flushes its buffer when it exits, which would fail again and print another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        problem = f"the disk is full: {' '.join(str(error).split())}"[:500]
        print(visible(f"{problem}; free space on it and repeat the command"), file=sys.stderr)
        sys.exit(exit_codes.FAILED)
