"""Compiled functions also work where no folder can be written."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from preprocessing.fast import compiled

code = "def double(value):\\n    return 2 * value"
names = {}
exec(compile(code, "/proc/none/double.py", "exec"), names)
double = compiled.compiled(names["double"])
print(double(21), double.signatures)
"""


def test_a_function_is_compiled_if_no_folder_can_be_written():
    environment = {**os.environ, "HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["42", "[(int64,)]"], done.stderr
