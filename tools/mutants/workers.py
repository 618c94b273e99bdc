"""A worker, which runs tests in forks of a process that has imported TensorFlow and TFX."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_SERVER = Path(__file__).with_name("test_server.py")
# Timeout of a test, which may hang because of a fault; the slowest test takes half of it.
_SECONDS_PER_TEST = 200
# Timeout of all fast tests, and of all slow tests. A mutant survives if no test fails before.
_SECONDS = 300


class Worker:
    """A process of test_server.py whose working folder is a clone with a mutant."""

    def __init__(self, tree: Path, log: Path):
        self.tree = tree
        environment = {
            **os.environ,
            # Takes precedence over the entry of .venv, which is the unchanged checkout.
            "PYTHONPATH": str(tree),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        self._process = subprocess.Popen(
            [tree / ".venv" / "bin" / "python", _SERVER, log],
            cwd=tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fails(self, files: Sequence[str]) -> bool:
        """Return whether a test in these files fails; the fast tests run first."""
        return bool(files) and any(
            self._run([*files, "-m", marks]) not in (0, 5) for marks in ("not slow", "slow")
        )

    def _run(self, arguments: Sequence[str]) -> int:
        """Return the exit code of pytest; 0 after a timeout."""
        assert self._process.stdin and self._process.stdout
        every = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        every += [f"--timeout={_SECONDS_PER_TEST}", "--timeout-method=thread"]
        request = {"arguments": [*every, *arguments], "seconds": _SECONDS}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code: int = json.loads(self._process.stdout.readline())
        return code
