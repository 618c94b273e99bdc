"""The arguments of a training process."""

import pytest

from trainer_module import task


def test_no_job_is_exit_code_2(capsys):
    with pytest.raises(SystemExit, match="2"):
        task.main([])
    assert "the following arguments are required: JOB" in capsys.readouterr().err
