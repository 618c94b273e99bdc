"""Runs tests in forks of a process that has imported TensorFlow and TFX."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_SERVER = Path(__file__).with_name("test_server.py")
# A test that a fault keeps from ending fails; the slowest that there is takes half of this.
_SECONDS_PER_TEST = 200
# For the fast tests, and again for the slow ones; a mutant that none has found by then survives.
_SECONDS = 300


class Worker:
    """One such process, whose working folder is a tree with a mutant."""

    def __init__(self, tree: Path, log: Path):
        self.tree = tree
        environment = {
            **os.environ,
            # Before the entry that leads from .venv to the tree that is not changed.
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
        """Return whether a test of these files fails; those that are fast run first."""
        return bool(files) and any(
            self._run([*files, "-m", marks]) not in (0, 5) for marks in ("not slow", "slow")
        )

    def _run(self, arguments: Sequence[str]) -> int:
        """pytest's exit code; 0 as well when time is up before a test failed."""
        assert self._process.stdin and self._process.stdout
        every = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        every += [f"--timeout={_SECONDS_PER_TEST}", "--timeout-method=thread"]
        request = {"arguments": [*every, *arguments], "seconds": _SECONDS}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code: int = json.loads(self._process.stdout.readline())
        return code
