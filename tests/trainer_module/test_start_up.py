"""The start of a training process: its arguments, and what it imports."""

import pytest

from trainer_module import task


def test_no_job_is_exit_code_2(capsys):
    with pytest.raises(SystemExit, match="2"):
        task.main([])
    assert "the following arguments are required: JOB" in capsys.readouterr().err
