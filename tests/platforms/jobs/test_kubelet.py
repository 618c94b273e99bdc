"""The ports of the processes that the test double of Kubernetes's nodes starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platforms.jobs.kubelet import REPOSITORY, free_ports

FIRST_OF_KERNEL = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


@pytest.mark.skipif(FIRST_OF_KERNEL < 20_000, reason="the kernel gives most ports to any process")
def test_no_other_process_gets_the_port_of_a_pod_before_it_listens():
    """Neither from the kernel, nor from this function in another worker of pytest."""
    code = "from tests.platforms.jobs.kubelet import free_ports; print(*free_ports(50))"
    chosen = []
    for worker in ("gw0", "gw1"):
        environ = {**os.environ, "PYTEST_XDIST_WORKER": worker, "PYTEST_XDIST_WORKER_COUNT": "2"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, env=environ, cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
        chosen.append({int(port) for port in done.stdout.split()})
    assert [len(each) for each in chosen] == [50, 50]
    assert not chosen[0] & chosen[1]
    assert max(chosen[0] | chosen[1]) < FIRST_OF_KERNEL
    first, second = free_ports(5), free_ports(5)
    assert not set(first) & set(second)
