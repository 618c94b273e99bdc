"""The table of the input pipeline: its ratios; and a run of each part."""

import pytest

from benchmarks import usage
from benchmarks.input_pipeline import table
from tests.trainer_module.conftest import FILES, make_job, prepared  # noqa: F401


def test_everything_is_compared_with_training():
    alone = {"examples": 1000, "seconds": 0.5, "cpu_seconds": 1.0}
    drawn = table({"input alone": alone, "training": {"examples": 1000, "seconds": 2.0}})
    names, _, rates, cpu, ratios = [list(column.cells) for column in drawn.columns]
    assert names == ["input alone", "training"]
    assert rates == ["2,000", "500"]
    assert cpu == ["100.00", ""]
    assert ratios == ["4.00", "1.00"]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["input", "model"])
def test_each_part_is_timed_alone(prepared, tmp_path, part):  # noqa: F811
    job = tmp_path / "job.json"
    job.write_text(make_job(prepared, tmp_path).model_dump_json())
    figures = usage.figures_of("benchmarks.input_pipeline", part, str(job), log=tmp_path / "log")
    assert figures["examples"] == sum(FILES["train"])
    assert figures["seconds"] > 0
    assert figures["cpu_seconds"] > 0
