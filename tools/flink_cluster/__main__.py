"""`make flink-cluster`: run a Flink cluster on loopback until Ctrl-C, and print how to use it."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from core.errors import UserError
from pipeline.flink_settings import Flink
from platforms.beam import flink_jars
from platforms.flink import check_java
from tools.flink_cluster.cluster import FlinkCluster


def main() -> int:
    """Start the cluster, wait for Ctrl-C, end the cluster."""
    parser = argparse.ArgumentParser(description="Run a Flink cluster on this machine.")
    parser.add_argument("--task-managers", type=int, default=2, metavar="N")
    parser.add_argument("--slots", type=int, default=1, help="slots of each TaskManager")
    arguments = parser.parse_args()
    if min(arguments.task_managers, arguments.slots) < 1:
        parser.error("--task-managers and --slots must be at least 1")
    try:
        check_java(Flink())
        _run(arguments.task_managers, arguments.slots)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("the cluster has ended")
    return 0


def _run(task_managers: int, slots: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="flink-cluster-"))
    jars = flink_jars(Flink())
    with FlinkCluster(jars, folder, task_managers, slots, worker_pools=True) as cluster:
        print(f"Flink: http://{cluster.address}  logs: {folder}")
        print(
            f"amazon-reviews run --config flink --set beam.flink.master={cluster.address} "
            "--set beam.flink.environment=EXTERNAL "
            f"--set beam.flink.worker_pool={cluster.worker_pool} "
            f"--set beam.flink.parallelism={task_managers * slots}",
            flush=True,
        )
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
