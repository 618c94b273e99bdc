"""Start our code with our own packages, whatever the working directory and PYTHONPATH contain.

The packages have common names, such as `core`, so the modules of another project may have the same
names. This module has a name that no other project uses. Its function `command` is the installed
command, and `python -m amazon_reviews_start` calls it too.

If the first argument is a number, a module is run as `python -m` does. PARENT is the id of the
parent process, at whose end this process is killed; with 0 it continues:

    python amazon_reviews_start.py PARENT MODULE ARGUMENTS...
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def command() -> None:
    """Run `amazon-reviews`; see `cli.command.main` for its exceptions."""
    from cli.command import main

    main()


def _run_module(parent: int, module: str) -> None:
    import runpy

    from core.processes import end_with

    if parent:
        end_with(parent)
    del sys.argv[:2]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1].isdecimal():
        _run_module(int(sys.argv[1]), sys.argv[2])
    else:
        command()
