"""Placeholders for spans: which paths match, and what is refused."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from preprocessing.reading.files import find_files
from preprocessing.reading.span_pattern import NEWEST, parse_pattern, spans_of

DATES = st.dates(datetime.date(1970, 1, 1), datetime.date(9999, 12, 31))
WIDTHS = st.one_of(st.none(), st.integers(1, 12))
LITERALS = st.text("ab-_.[*?+()", max_size=4)


def days(date):
    return (date - datetime.date(1970, 1, 1)).days


def written(number, width):
    """Return a placeholder's width, and the number in a path; None if it has too many digits."""
    if width is None:
        return "", str(number)
    text = str(number).zfill(width)
    return f":{width}", text if len(text) == width else None


@given(st.integers(0, 10**8), st.integers(0, 1000), WIDTHS, WIDTHS, LITERALS, LITERALS)
def test_a_path_with_numbers_matches_its_pattern(span, version, width, other, before, after):
    shown, text = written(span, width)
    shown_version, version_text = written(version, other)
    path = f"/in/{before}x{{SPAN{shown}}}{after}/v{{VERSION{shown_version}}}"
    pattern = parse_pattern(path)
    assert (pattern.base, str(pattern), pattern.has_version) == ("/in", path, True)
    if text and version_text:
        parts = (f"{before}x{text}{after}", f"v{version_text}")
        assert pattern.match(parts) == (span, version)
        assert pattern.may_contain(parts[:1]) and not pattern.may_contain(("y", *parts[1:]))
        assert pattern.match(parts[:1]) is None and pattern.match((*parts, "a.txt")) is None


@given(DATES, st.sampled_from(["{YYYY}-{MM}-{DD}", "{YYYY}{MM}{DD}.csv", "{DD}.{MM}.{YYYY}"]))
def test_a_date_is_the_days_since_1970_and_every_way_to_set_it_is_the_same_span(date, name):
    pattern = parse_pattern(f"gs://bucket/{name}")
    year, month, day = date.isoformat().split("-")
    parts = (name.replace("{YYYY}", year).replace("{MM}", month).replace("{DD}", day),)
    span, version = pattern.match(parts)
    assert (span, version) == (days(date), None)
    assert pattern.name(span) == date.isoformat()
    compact = f"{year}{month}{day}"
    for text in (date.isoformat(), compact, f"{compact}030000", f"{date}T03:00:00Z"):
        assert pattern.number(text) == span
        assert pattern.number(f"{text}-1d") == span - 1
    assert pattern.number(NEWEST) is None


@pytest.mark.parametrize(
    "time", ["T03:00", " 03:00:00", "T23:59:59.123456789Z", "T03:00:00+05:30", " 00:00-0800"]
)
def test_the_day_of_a_time_counts(time):
    pattern = parse_pattern("/in/{YYYY}{MM}{DD}")
    assert pattern.name(pattern.number(f"2026-11-28{time}")) == "2026-11-28"


@pytest.mark.parametrize("time", ["030000", "T030000"])
def test_the_day_of_a_time_without_separators_counts(time):
    pattern = parse_pattern("/in/{YYYY}{MM}{DD}")
    assert pattern.name(pattern.number(f"20261128{time}")) == "2026-11-28"


@pytest.mark.parametrize(
    "span",
    [
        *(
            "2026-11-28Tomorrow",
            "2026-11-28 or so",
            "2026-11-28T",
            "2026-11-28T3:00",
            "2026-11-28 ",
        ),
        *("2026-11-28T25:00:00Z", "2026-11-28T03:61", "2026-11-28T03:00:00X", "20261128990000"),
        "20261128T0300",
    ],
)
def test_a_date_with_something_else_behind_it_is_refused(span):
    with pytest.raises(ValueError, match=f"^span: {span} is not a date"):
        spans_of("/in/{YYYY}{MM}{DD}", 1, span)


def test_seconds_since_1970_are_the_span_of_their_day_in_utc():
    pattern = parse_pattern("/in/{YYYY}/{MM}/{DD}/")
    for hour, minute, second in [(0, 0, 0), (3, 0, 0), (23, 59, 59)]:
        time = datetime.datetime(2026, 11, 28, hour, minute, second, tzinfo=datetime.timezone.utc)
        text = str(int(time.timestamp()))
        assert pattern.name(pattern.number(text)) == "2026-11-28"
        assert pattern.name(pattern.number(f"{text}-2d")) == "2026-11-26"
    assert parse_pattern("/in/{SPAN}").number("1795834800") == 1795834800


def test_dates_in_three_folders_and_what_does_not_match():
    pattern = parse_pattern("/in/{YYYY}/{MM}/{DD}/")
    assert pattern.match(("2026", "11", "28")) == (days(datetime.date(2026, 11, 28)), None)
    for parts in [("2026", "11", "8"), ("26", "11", "28"), ("2026", "11", "28x")]:
        assert pattern.match(parts) is None
    with pytest.raises(ValueError, match="day is out of range"):
        pattern.match(("2026", "02", "30"))
    assert parse_pattern("/in/{span}/{}/a") is None
    assert pattern.inside("/in/2026/11/28/runs/a") == "runs/a"
    for path in ("/in/2026/11/runs/a", "/in/2026/11/28", "/elsewhere/2026/11/28/a"):
        assert pattern.inside(path) == path


@pytest.mark.parametrize(
    ("path", "window", "span", "line"),
    [
        ("/in", 7, NEWEST, "window: 7 requires spans in data.input_base; write {SPAN}"),
        ("/in", 1, "3", "span: 3 requires spans in data.input_base"),
        (None, 2, NEWEST, "window: 2 requires spans"),
        ("/in/{VERSION}", 1, NEWEST, "input_base: .* has {VERSION} without a span; add {SPAN}"),
        ("/in/{SPAN}/{SPAN}", 1, NEWEST, "input_base: .* has {SPAN} more than once"),
        ("/in/{YYYY}-{MM}", 1, NEWEST, "input_base: .* has {YYYY}, {MM}; a span is {SPAN}, or"),
        ("/in/{SPAN}{YYYY}{MM}{DD}", 1, NEWEST, "input_base: .*; a span is {SPAN}, or"),
        ("/in/{SPAN}{VERSION}", 1, NEWEST, "input_base: .*put another character between them"),
        ("/in/{DAY}", 1, NEWEST, "input_base: .*unknown placeholder {DAY}; known are {SPAN}"),
        ("/in/{SPAN:0}", 1, NEWEST, "input_base: .*{SPAN} requires a number of digits"),
        ("/in/{YYYY}{MM}{DD:2}", 1, NEWEST, "input_base: .*{DD} has no width"),
        ("gs://{SPAN}/in", 1, NEWEST, "input_base: .*the name of a bucket has no placeholder"),
        ("/in/{SPAN}", 1, "2026-11-28", "span: 2026-11-28 is not a number"),
        ("/in/{YYYY}{MM}{DD}", 1, "28", "span: 28 is not a date"),
        ("/in/{YYYY}{MM}{DD}", 1, "2026-02-30", "span: 2026-02-30 is not a date"),
        ("/in/{YYYY}{MM}{DD}", 1, "0001-01-01-1d", "span: 0001-01-01-1d is not a date"),
    ],
)
def test_settings_that_do_not_fit_together_are_one_line(path, window, span, line):
    with pytest.raises(ValueError, match=f"^{line}") as error:
        spans_of(path, window, span)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "has_hint"),
    [
        ("{YYYY-MM-DD}", True),
        ("{yyyy}-{mm}-{dd}", True),
        ("%Y-%m-%d", True),
        ("reviews", False),
        ("100%", False),
    ],
)
def test_a_missing_folder_with_placeholders_of_others_names_those_of_spans(
    tmp_path, name, has_hint
):
    base = str(tmp_path / name)
    with pytest.raises(InputError, match="does not exist") as raised:
        find_files(base, "**")
    assert ("placeholders of spans are {SPAN}, {YYYY}" in str(raised.value)) == has_hint
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.csv").write_text("label,text\n")
    assert len(find_files(base, "**")) == 1
