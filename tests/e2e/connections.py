"""Records what a command and all of its child processes connect to and execute."""

import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".cpp")


class Connections:
    """A library that `environ` preloads into every process, and the log that it writes.

    The library also records native code, such as gRPC's, which Python's audit hooks do not.
    """

    def __init__(self, folder):
        self._log = folder / "log.tsv"
        library = folder / "connections.so"
        command = ["c++", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        self.environ = {"LD_PRELOAD": str(library), "CONNECTIONS_LOG": str(self._log)}

    def left_the_machine(self):
        """(`connect`, `sendto` or `lookup`, address or host name) beyond loopback."""
        return [line for line in self._lines() if line[0] != "execute"]

    def executed(self):
        """Paths of the programs that were started, or looked for on $PATH."""
        return [value for kind, value in self._lines() if kind == "execute"]

    def _lines(self):
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [(kind, value) for kind, _, value in (line.partition("\t") for line in lines)]
