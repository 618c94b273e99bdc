"""ReviewExampleGen on a window of spans: its splits, and the spans that it does not read again."""

import hashlib
import os
import re
from pathlib import Path

import pytest

from components import span_cache
from components.review_example_gen import read_spans, units
from core.errors import InputError
from preprocessing.reading import pieces
from tests.components.example_gen import line, read_files

pytestmark = pytest.mark.slow


@pytest.fixture
def days(tmp_path):
    """Five days with 60 reviews each, of which some repeat reviews of the day before."""
    folder = tmp_path / "exports"
    for day in range(1, 6):
        numbers = range(50 * day, 50 * day + 60)
        add(folder, day, [*(line(n, 1 + n % 2) for n in numbers), "no label"])
    return folder


def add(folder, day, lines, version=1):
    path = folder / f"day-{day}" / f"v{version}" / "reviews.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{text}\n" for text in lines))


class Runs:
    """Executions on the days, with the same cache unless another one is given."""

    def __init__(self, tmp_path, days, log):
        self.cache = tmp_path / "cache"
        self._folder, self._days, self._log = tmp_path, days, log
        self._count = 0

    def read(self, span="newest", cache=None, window=3, **options):
        """Return the execution, the digests of all files, and (spans read, spans reused)."""
        self._count += 1
        folder = self._folder / f"run-{self._count}"
        folder.mkdir()
        options = {"max_rejected_fraction": 0.1, **options}
        self._log.clear()
        found = read_files(
            folder,
            self._days / "day-{SPAN}" / "v{VERSION}",
            {"all": "**"},
            span=span,
            window=window,
            span_cache=str(self.cache if cache is None else cache),
            **options,
        )
        numbers = re.findall(r"Spans: (\d+) are read, (\d+) are reused", self._log.text)
        files = {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        return found, files, tuple(map(int, numbers[0]))

    def entries(self):
        return sorted(int(path.name.split("-")[0]) for path in self.cache.iterdir())


@pytest.fixture
def runs(tmp_path, days, log):
    return Runs(tmp_path, days, log)


def numbers_of(read, split):
    return {int(text.split()[-1]) for text in read.texts(split)}


def test_the_newest_span_without_older_texts_is_the_test_split(runs):
    read, files, _ = runs.read("3")
    assert numbers_of(read, "test") == set(range(160, 210))
    assert numbers_of(read, "train") | numbers_of(read, "eval") == set(range(50, 160))
    assert len(numbers_of(read, "eval")) > 3
    # The ten reviews of day 1 that day 2 repeats are in the same split twice.
    assert len(read.splits["train"]) + len(read.splits["eval"]) == 120
    repeated = [each for each in read.rejected if each["reason"] == "duplicate_across_splits"]
    assert {each["detail"] for each in repeated} == {"the same text is in span 2"}
    assert [each["position"] for each in repeated] == [*range(1, 11)]
    assert read.counts["rejected/duplicate_across_splits"] == 10
    assert sum(read.counts.values()) == 3 * 61
    assert read.reading.splitlines()[0] == (
        "spans 1 version 1 to 3 version 1, of which 3 version 1 is the test split"
    )
    assert read.examples.get_int_custom_property("span") == 3
    assert read.examples.get_int_custom_property("version") == 1
    assert not [file for file in files if "unpublished" in file]


@pytest.mark.parametrize("window", [1, 3])
def test_a_mapped_label_that_the_window_lacks_is_named(tmp_path, days, window):
    mapping = {"task": "map", "classes": ["a", "b"], "label_map": {"1": 0, "2": 1, "3": 1}}
    read = read_files(
        tmp_path, days / "day-{SPAN}" / "v{VERSION}", {"all": "**"}, window=window, read=mapping
    )
    assert "data.labels names 3, which no line of this window has" in read.classes


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_examples": {"train": 40, "test": 30}},
        {"read": {"task": "each"}},
    ],
    ids=str,
)
def test_a_window_that_moves_by_one_span_has_the_bytes_of_one_from_nothing(
    runs, options, monkeypatch
):
    # A span has several units with several shards.
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 400)
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 800)
    monkeypatch.setattr(units, "_BYTES_PER_SHARD", 300)
    assert runs.read("4", **options)[2] == (3, 0)
    _, moved, spans = runs.read("5", **options)
    assert spans == (1, 2)
    _, nothing, spans = runs.read("5", cache="", **options)
    assert spans == (3, 0)
    assert len(moved) > 20 and moved == nothing
    # The span that left the window is removed; labels are kept apart from Examples.
    assert set(runs.entries()) == {3, 4, 5}
    assert runs.read("5", **options)[1:] == (nothing, (0, 3))


def test_a_corrected_version_replaces_its_span_alone(runs, days):
    runs.read("5")
    add(days, 4, [line(n, 1 + n % 2) for n in range(900, 960)], version=2)
    read, files, spans = runs.read("5")
    assert spans == (1, 2)
    assert numbers_of(read, "train") >= set(range(900, 960)) - numbers_of(read, "eval")
    assert not numbers_of(read, "train") & set(range(220, 250))
    assert files == runs.read("5", cache="")[1]
    assert runs.entries() == [3, 4, 5]


def test_content_and_not_names_or_times_decides(runs, days):
    runs.read("5")
    file = days / "day-4" / "v1" / "reviews.txt"
    times, text = file.stat(), file.read_text()
    file.write_text(text.replace("body 200", "body 999"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert runs.read("5")[2] == (1, 2)
    file.write_text(text)
    assert runs.read("5")[2] == (1, 2)
    file.touch()
    assert runs.read("5")[2] == (0, 3)


def test_damage_and_what_a_killed_run_left_behind_are_read_again(runs, monkeypatch):
    _, right, _ = runs.read("5")
    shards = sorted(runs.cache.glob("*-*/*train*.gz"))
    # A hard link to an artifact of an earlier run is not written to.
    damaged = shards[0].read_bytes()[:-1] + b"x"
    shards[0].unlink()
    shards[0].write_bytes(damaged)
    next(iter(shards[1].parent.glob("entry.json"))).unlink()
    _, files, spans = runs.read("5")
    assert (files, spans) == (right, (2, 1))
    rename, calls = span_cache.fileio.rename, []

    def killed(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        rename(*arguments, **options)

    for path in runs.cache.glob("*-*/entry.json"):
        path.unlink()
    monkeypatch.setattr(span_cache.fileio, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        runs.read("5")
    monkeypatch.setattr(span_cache.fileio, "rename", rename)
    _, files, spans = runs.read("5")
    assert (files, spans) == (right, (3, 0))


def test_a_run_of_earlier_spans_does_not_remove_those_of_the_next_day(runs):
    runs.read("4")
    runs.read("3")
    assert runs.entries() == [1, 2, 3, 4]
    assert runs.read("5")[2] == (1, 2)
    assert runs.entries() == [3, 4, 5]


def test_with_another_size_of_the_eval_split_the_spans_are_read_again(runs):
    usual, *_ = runs.read("3")
    small, _, numbers = runs.read("3", split_fractions={"eval": 0.02})
    assert numbers == (3, 0)
    assert numbers_of(small, "eval") < numbers_of(usual, "eval")
    assert numbers_of(small, "test") == numbers_of(usual, "test")
    assert numbers_of(small, "train") > numbers_of(usual, "train")
    assert runs.read("3", split_fractions={"eval": 0.02})[2] == (0, 3)


def test_a_file_that_changes_while_it_is_read_is_an_error_and_not_kept(runs, days, monkeypatch):
    read = read_spans.SpanReader._run

    def read_and_change(self, *arguments):
        results = read(self, *arguments)
        path = days / "day-5" / "v1" / "reviews.txt"
        path.write_text(path.read_text() + "__label__1 late\n")
        return results

    monkeypatch.setattr(read_spans.SpanReader, "_run", read_and_change)
    with pytest.raises(InputError, match="day-5/v1 changed while it was read; run again"):
        runs.read("5")
    monkeypatch.undo()
    read, *_ = runs.read("5")
    assert b"late" in read.texts("test")


@pytest.mark.parametrize("window", [1, 3])
def test_a_span_without_a_review_is_named(runs, days, window):
    add(days, 6, ["__label__1 "] * 3)
    with pytest.raises(InputError, match=r"span 6 \(.*day-6/v1\) has no usable review: 3 read"):
        runs.read("6", window=window, max_rejected_fraction=1.0)
    add(days, 6, [line(6), line(7, 2)], version=2)
    add(days, 7, [])
    with pytest.raises(InputError, match=r"span 7 .* has no usable review: 0 read"):
        runs.read("7", window=window, max_rejected_fraction=1.0)


def test_a_span_that_repeats_older_ones_is_named(runs, days):
    older = (days / "day-4" / "v1" / "reviews.txt").read_text().splitlines()
    add(days, 6, [*reversed(older), older[0]])
    with pytest.raises(InputError, match=r"all 61 reviews of span 6 .* are in older spans too"):
        runs.read("6")


def test_the_files_of_a_run_stay_when_its_entries_are_removed(runs):
    read, *_ = runs.read("3")
    before = read.content("train")
    runs.read("5", window=2)
    assert set(runs.entries()) == {4, 5}
    read.__dict__.pop("splits")
    assert read.content("train") == before
    assert Path(read.examples.uri).exists()
