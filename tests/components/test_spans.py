"""The spans of an input: the files of a window, and the line for a span that is missing."""

import re

import pytest

from components.review_example_gen.spans import find_input
from core.errors import InputError
from preprocessing.reading.files import fingerprint

ALL = {"all": "**"}


@pytest.fixture
def exports(tmp_path):
    return tmp_path / "exports"


def add(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"__label__1 {name}\n")


def found(exports, pattern, window=1, span="newest", patterns=ALL):
    read = find_input(f"{exports}/{pattern}", patterns, window, span)
    files = [(file.path.removeprefix(f"{exports}/"), file.group) for file in read.files]
    return files, [each.name for each in read.spans]


def test_the_window_ends_at_the_newest_span_or_at_the_one_that_is_set(exports):
    add(exports, *(f"2026-{day}/{name}" for day in ("02-27", "02-28", "03-01") for name in "ab"))
    add(exports, "README.md", "other/2026-03-02/a", "2026-03-02.part/a")
    dates = "{YYYY}-{MM}-{DD}"
    newest = [(f"2026-03-01/{name}", "all") for name in "ab"]
    assert found(exports, dates) == (newest, ["2026-03-01"])
    older = [(f"2026-02-28/{name}", "train") for name in "ab"]
    test = [(path, "test") for path, _ in newest]
    assert found(exports, dates, 2) == ([*older, *test], ["2026-02-28", "2026-03-01"])
    files, names = found(exports, dates, 2, "20260228")
    assert (files[-1], names) == (("2026-02-28/b", "test"), ["2026-02-27", "2026-02-28"])
    # The usual splits of a window of one span.
    files, _ = found(exports, dates, patterns={"train": "a*", "test": "b*"})
    assert files == [("2026-03-01/a", "train"), ("2026-03-01/b", "test")]


def test_a_span_can_be_a_file_and_its_newest_version_replaces_the_others(exports):
    add(exports, "day-9.v1.csv", "day-10.v9.csv", "day-10.v10.csv", "day-11.v1.csv.gz")
    files, names = found(exports, "day-{SPAN}.v{VERSION}.csv", 2)
    assert files == [("day-9.v1.csv", "train"), ("day-10.v10.csv", "test")]
    assert names == ["9", "10"]


def test_the_fingerprint_changes_with_a_span_a_version_and_a_role_alone(exports):
    def key(span="newest"):
        read = find_input(f"{exports}/{{SPAN}}/v{{VERSION}}", ALL, 2, span)
        return fingerprint(read.base, read.files)

    add(exports, "1/v1/a", "2/v1/a")
    first = key()
    add(exports, "0/v1/a", "1/v1.old/a", "3")
    assert key() == first
    add(exports, "3-folder/v1/a")
    assert key() == first
    add(exports, "1/v2/a")
    corrected = key()
    (exports / "3").unlink()
    add(exports, "3/v1/a")
    assert len({first, corrected, key()}) == 3
    assert key("2") == corrected


@pytest.mark.parametrize(
    ("names", "empty", "pattern", "window", "span", "parts"),
    [
        (["other/a"], [], "day-{SPAN}", 1, "newest", ["contains no span", "/day-{SPAN}"]),
        (
            ["day-1/a", "day-2/a"], [], "day-{SPAN}", 1, "3",
            ["data.span: span 3 of", "is not there yet; there are 1 to 2"],
        ),
        (["day-2/a"], [], "day-{SPAN}", 1, "1", ["span 1 of", "is not there; there is 2"]),
        (
            ["1/a", "2/a", "4/a"], [], "{SPAN}", 3, "newest",
            ["data.window: 3 spans up to 4", "lack the span 3; there are 1 to 2 and 4."],
        ),
        (["1/a"], [], "{SPAN}", 3, "newest", ["lack the spans 0 and 1 more; there is 1."]),
        (["0/a"], [], "{SPAN}", 3, "newest", ["3 spans up to 0", "lack 2 spans; there is 0."]),
        (
            ["7/a"], [], "{SPAN}", 10**12, "newest",
            ["lack the spans 0, 1, 2, 3, 4 and 999,999,999,994 more; there is 7."],
        ),
        (
            ["2026-11-28/a"], [], "{YYYY}-{MM}-{DD}", 10**6, "newest",
            ["lack the spans 0001-01-01, 0001-01-02,", "and 999,994 more; there is 2026-11-28."],
        ),
        (
            ["1/a"], ["2"], "{SPAN}", 2, "newest",
            [
                "span 2 has no files, because ",
                "exports/2 and its subfolders contain no file of texts that matches '**'; export ",
                "export it again, or set data.span to an earlier one",
            ],
        ),
        (["1/v1/a"], ["1/v2"], "{SPAN}/v{VERSION}", 1, "newest", ["span 1 has no files"]),
        (
            ["1/a", "2/_delta_log/0.json", "2/part-0.parquet"], [], "{SPAN}", 2, "newest",
            ["data.input_base: span 2: ", "Delta"],
        ),
        (
            ["day-1/a", "day-01/a"], [], "day-{SPAN}", 1, "newest",
            ["span 1 is there 2 times", "/day-01", "/day-1; keep one"],
        ),
        (
            ["1/v1/a", "1/v01/a"], [], "{SPAN}/v{VERSION}", 1, "newest",
            ["span 1, version 1, is there 2 times"],
        ),
        (["2026-02-30/a"], [], "{YYYY}-{MM}-{DD}", 1, "newest", ["2026-02-30 is no date"]),
        (
            ["20261128030000123456/a"], [], "{SPAN}", 1, "newest",
            ["/20261128030000123456 has a number above 9,223,372,036,854,775,806, the"],
        ),
        (["1/9223372036854775807/a"], [], "{SPAN}/{VERSION}", 1, "newest", ["has a number above"]),
        (["a"], [], "none/{SPAN}", 1, "newest", ["exports/none does not exist; set"]),
    ],
)  # fmt: skip
def test_a_span_that_is_not_as_it_should_be_is_one_line(
    exports, names, empty, pattern, window, span, parts
):
    add(exports, *names)
    for folder in empty:
        (exports / folder).mkdir(parents=True)
    with pytest.raises(InputError) as error:
        found(exports, pattern, window, span)
    assert "\n" not in str(error.value)
    assert all(part in str(error.value) for part in parts), error.value


def test_two_of_the_same_span_matter_in_the_window_alone(exports):
    add(exports, "1/a", "01/a", "2/a", "3/a")
    assert found(exports, "{SPAN}", 2)[1] == ["2", "3"]
    with pytest.raises(InputError, match=re.escape("span 1 is there 2 times")):
        found(exports, "{SPAN}", 3)
