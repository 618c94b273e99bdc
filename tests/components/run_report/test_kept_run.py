"""A run that is kept for MLflow: its file has the outcome, and the reader restores it."""

import dataclasses

import pytest

from components.run_report.content import collect
from components.run_report.mlflow_run import Record
from components.run_report.tracking import _keep, _read
from tests.components.run_report.artifacts import write_run
from tests.outcomes import OUTCOME


@pytest.mark.parametrize("outcome", [OUTCOME, None])
def test_a_kept_run_has_its_outcome(tmp_path, outcome):
    written = write_run(tmp_path / "run")
    run = dataclasses.replace(written, outcome=outcome, pushed_to="", span="2026-11-28")
    unsent = tmp_path / "unsent"
    unsent.mkdir()
    _keep(str(unsent), Record(collect(run), {"platform": "local"}, ""))
    [file] = unsent.glob("*.json")
    found = _read(str(file))
    assert found.content.run.outcome == outcome
    assert found.content.run.steps == run.steps
    assert found.content.run.span == run.span
