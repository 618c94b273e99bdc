"""The simulation of large inputs: what more slots and more reviews do."""

import re
import subprocess
import sys

import pytest

from benchmarks import scale_model
from benchmarks.scale_model import (
    GIB,
    Data,
    bytes_at_one_place,
    bytes_of_held_out,
    reviews_at,
    seconds,
    stages,
)
from benchmarks.usage import REPOSITORY
from components.review_example_gen import held_out, ranks, units

EVERYTHING = {"held_out": 0.1, "max_examples": True, "all_statistics": True}


def total(data, slots, seed=0):
    return sum(seconds(stage, slots, seed) for stage in stages(data))


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
    page = (REPOSITORY / "docs" / "explanation" / "scale.md").read_text()
    row = f"Beam components with {slots} slots" if slots == 2 else f"with {slots} slots"
    [line] = [line for line in page.splitlines() if line.startswith(f"| {row} |")]
    written = re.findall(r"([\d.]+) h(?:, (\d+) %)?", line)
    assert len(written) == 2
    for (hours, percent), reviews in zip(written, (10**8, 10**9), strict=True):
        data = Data(reviews)
        expected = total(data, slots) / 3600
        assert f"{expected:.{len(hours.partition('.')[2])}f}" == hours
        if percent:
            serial = sum(stage.start + stage.alone for stage in stages(data)) / 3600
            assert f"{serial / expected * 100:.0f}" == percent


def test_the_command_prints_a_table_for_each_input():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--reviews", "1e6,2e6", "--slots", "2,4"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "1,000,000 reviews" in done.stdout
    assert "2,000,000 reviews" in done.stdout
    assert "4 slots, h" in done.stdout
