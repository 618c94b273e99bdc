"""The line about a full disk that ends a local run."""

import errno
import os
from unittest.mock import Mock

import pytest

from platforms.local import main


def test_a_full_disk_during_a_component_has_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["local_runner.py", "--set", f"paths.root={tmp_path / 'runs'}"])
    sender = Mock(component="Transform")
    monkeypatch.setattr(main.RunSender, "attach", lambda: sender)
    monkeypatch.setattr(main.logging, "get_absl_logger", Mock())
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/runs/examples.gz")
    monkeypatch.setattr(main, "_run", Mock(side_effect=full))
    with pytest.raises(OSError, match="No space left on device"):
        main.main()
    [call] = sender.fail.call_args_list
    line = (
        "OSError: [Errno 28] No space left on device: '/data/runs/examples.gz'; the disk is full: "
        "free space on it and run again"
    )
    assert call.args == (line, "Transform")
