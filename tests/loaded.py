"""Run `amazon-reviews` in a process of its own, and find out which modules it has loaded."""

import os
import subprocess
import sys

PROGRAM = """
import sys
sys.argv = ["amazon-reviews", *sys.argv[1:]]
from cli.command import main
try:
    main()
finally:
    print("LOADED", *{name.split(".")[0] for name in sys.modules}, *sys.modules)
"""


def run_command(*words, **environ):
    """Return the finished process, what it printed, and the names of its modules."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )
    printed, _, loaded = done.stdout.rpartition("LOADED ")
    return done, printed, set(loaded.split())
