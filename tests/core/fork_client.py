"""A client of the fork server, run as a process of its own: `fork_client.py KIND`.

The work prints its pid and that of the server. $SECONDS is the greatest time without workers.
"""

import os
import signal
import sys
import time

from core.flink import fork_server

NO_SERVER = 99
LIBRARY = "wave"
"""A module that nothing else imports."""


def work(words):
    assert LIBRARY in sys.modules
    print(os.getpid(), os.getppid(), flush=True)
    match words:
        case ["endless"]:
            time.sleep(600)
        case ["exit"]:
            sys.exit(7)
        case ["fault"]:
            raise ZeroDivisionError("division by zero")
        case ["killed"]:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    fork_server.LIBRARIES = (LIBRARY, *sys.argv[2:])
    fork_server.SECONDS_WITHOUT_WORKERS = float(os.environ["SECONDS"])
    code = fork_server.run(work, sys.argv[1:2])
    sys.exit(NO_SERVER if code is None else code)
