"""The simulation of large inputs: what more slots and more reviews do."""

import json
import re
import subprocess
import sys

import pytest

from benchmarks import scale_model
from benchmarks.scale_model import (
    GIB,
    JOBS,
    Data,
    bytes_at_one_place,
    bytes_of_held_out,
    jobs_of,
    reviews_at,
    seconds,
    stages,
)
from benchmarks.usage import REPOSITORY
from components.review_example_gen import held_out, ranks, units

EVERYTHING = {"held_out": 0.1, "max_examples": True, "all_statistics": True}


PAGE = REPOSITORY / "docs" / "explanation" / "scale.md"


def total(data, slots, seed=0):
    return sum(seconds(stage, slots, seed) for stage in stages(data))


def figures(one):
    """Return figures of the benchmark of the runners, in which direct takes ten seconds."""
    names = (*JOBS, "StatisticsGen")
    return {
        "direct": {"seconds": dict.fromkeys(names, 10.0), "cpu": dict.fromkeys(names, 20.0)},
        "one": {"seconds": dict.fromkeys(names, one), "cpu": dict.fromkeys(names, 5.0)},
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("reviews", [1, 150_000, 3_000_000, 40_000_000])
def test_twice_the_slots_are_never_slower(reviews, seed):
    data = Data(reviews, **EVERYTHING)
    for stage in stages(data):
        times = [seconds(stage, slots, seed) for slots in (1, 2, 4, 8, 16, 32, 64)]
        assert times == sorted(times, reverse=True), stage


@pytest.mark.parametrize("slots", [1, 3, 64])
def test_more_reviews_are_never_faster(slots):
    counts = [10**exponent * factor for exponent in range(4, 8) for factor in (1, 2, 5)]
    times = [total(Data(count, **EVERYTHING), slots) for count in counts]
    assert times == sorted(times)


def test_equal_seeds_give_equal_results():
    data = Data(20_000_000)
    assert total(data, 16, seed=1) == total(data, 16, seed=1)
    assert total(data, 16, seed=1) != total(data, 16, seed=2)


def test_no_number_of_slots_shortens_what_one_process_does():
    data = Data(100_000_000)
    serial = sum(stage.start + stage.alone for stage in stages(data))
    assert serial < total(data, 10_000) < 1.5 * serial


def test_the_limit_of_a_place_is_where_it_has_this_size():
    data = Data(1_000_000, **EVERYTHING)
    for what, reviews in reviews_at(GIB, data).items():
        sizes = bytes_at_one_place(data._replace(reviews=round(reviews)))
        assert sizes[what] == pytest.approx(GIB, rel=0.01)
    assert reviews_at(GIB, data)["blocks of a resumed epoch, one Trainer"] == pytest.approx(GIB / 3)


def test_held_out_keys_are_bounded_in_every_input():
    names = set()
    for reviews in (10**exponent for exponent in range(5, 13)):
        found = bytes_of_held_out(Data(reviews, **EVERYTHING))
        assert all(0 < size < 200 << 20 for size in found.values())
        names |= set(found)
    assert len(names) == 3


def test_the_sizes_are_those_of_the_code():
    assert scale_model._BYTES_PER_UNIT == units._BYTES_PER_UNIT
    assert scale_model._BROADCAST_BYTES == held_out.BROADCAST_BYTES
    assert scale_model._BYTES_PER_RANGE == held_out._BYTES_PER_RANGE
    assert scale_model._BUCKETS == ranks._BUCKETS


@pytest.mark.parametrize("slots", [2, 16, 64, 256])
def test_the_page_has_the_hours_of_the_simulation(slots):
    row = f"Beam components with {slots} slots" if slots == 2 else f"with {slots} slots"
    [line] = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {row} |")]
    written = re.findall(r"([\d.]+) h(?:, (\d+) %)?", line)
    assert len(written) == 2
    for (hours, percent), reviews in zip(written, (10**8, 10**9), strict=True):
        data = Data(reviews)
        expected = total(data, slots) / 3600
        assert f"{expected:.{len(hours.partition('.')[2])}f}" == hours
        if percent:
            serial = sum(stage.start + stage.alone for stage in stages(data)) / 3600
            assert f"{serial / expected * 100:.0f}" == percent


@pytest.mark.parametrize("component", JOBS)
def test_the_start_of_a_job_is_that_of_the_measurement_on_the_page(component):
    """After a new measurement, `JOBS` needs its figures: `benchmarks.scale --runners FILE`."""
    section = PAGE.read_text().partition("## What was measured")[2]
    line = next(line for line in section.splitlines() if line.startswith(f"| {component} |"))
    direct, one, _ = re.findall(r"([\d.]+) \(", line)
    assert JOBS[component] == (float(direct), float(one))


def test_the_page_has_the_starts_of_the_simulation():
    starts = [f"{one - direct:.1f}" for direct, one in JOBS.values()]
    assert f"| {', '.join(starts[:-1])} and {starts[-1]} s |" in PAGE.read_text()


def test_a_measurement_of_the_runners_gives_the_start_of_each_job():
    data = Data(1_000_000)
    fast, slow = (stages(data, jobs_of(figures(one))) for one in (10.0, 40.0))
    added = [after.start - before.start for before, after in zip(fast, slow, strict=True)]
    assert sorted(added) == [0.0] * (len(added) - 3) + [30.0] * 3
    # On a busy machine the direct runner can take longer.
    assert stages(data, jobs_of(figures(9.0))) == fast


def scale(*options):
    command = [sys.executable, "-m", "benchmarks.scale", *map(str, options)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)


def test_the_command_prints_a_table_for_each_input():
    done = scale("--reviews", "1e6,2e6", "--slots", "2,4")
    assert done.returncode == 0, done.stderr
    assert "1,000,000 reviews" in done.stdout
    assert "2,000,000 reviews" in done.stdout
    assert "4 slots, h" in done.stdout


def test_the_command_reads_a_measurement_of_the_runners(tmp_path):
    file = tmp_path / "runners.json"
    file.write_text(json.dumps(figures(4321.0)))
    done = scale("--reviews", "1e6", "--slots", "2", "--runners", file)
    assert done.returncode == 0, done.stderr
    assert "4321.0" in done.stdout and "4311.0" in done.stdout
    file.write_text(json.dumps({"direct": {}}))
    failed = scale("--runners", file)
    assert failed.returncode == 2
    assert f"error: --runners: {file} lacks direct or one" in failed.stderr
