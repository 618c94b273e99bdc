"""The line about a full disk that ends a local run."""

import errno
import os
from unittest.mock import Mock

import pytest

from platforms.local import main
from trainer_module.loop.checkpoints import CheckpointError

ERROR = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/runs/examples.gz")
LINE = "OSError: [Errno 28] No space left on device: '/data/runs/examples.gz'"
CHECKPOINT = "the checkpoint cannot be written (No space left on device); free space there"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ERROR, f"{LINE}; the disk is full: free space on it and run again"),
        (CheckpointError(CHECKPOINT), f"CheckpointError: {CHECKPOINT}"),
    ],
    ids=["of Python", "with a remedy"],
)
def test_a_full_disk_during_a_component_has_one_remedy(monkeypatch, tmp_path, error, line):
    monkeypatch.setattr("sys.argv", ["local_runner.py", "--set", f"paths.root={tmp_path / 'runs'}"])
    sender = Mock(component="Transform")
    monkeypatch.setattr(main.RunSender, "attach", lambda: sender)
    monkeypatch.setattr(main.logging, "get_absl_logger", Mock())
    monkeypatch.setattr(main, "_run", Mock(side_effect=error))
    with pytest.raises(type(error), match="No space left on device"):
        main.main()
    [call] = sender.fail.call_args_list
    assert call.args == (line, "Transform")
