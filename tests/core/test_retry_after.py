"""The header Retry-After: seconds, a date, or nothing that can be read."""

import datetime
import email.utils
import time

import pytest

from core.retry_after import retry_after


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), *((value, 0) for value in ("", "soon", "-1", "1.5", "\u00b2"))]
)
def test_the_pause_is_never_negative(value, seconds):
    assert retry_after({"retry-after": value}) == seconds
    assert retry_after({"Retry-After": value}) == seconds


def test_a_date_is_a_pause_until_then():
    now = datetime.datetime.now(datetime.timezone.utc)
    hour = datetime.timedelta(hours=1)
    later, earlier = (
        email.utils.format_datetime(time, usegmt=True) for time in (now + hour, now - hour)
    )
    assert 3000 <= retry_after({"retry-after": later}) <= 3600
    assert retry_after({"retry-after": earlier}) == 0


@pytest.mark.parametrize("zone", ["GMT", "-0000"])
def test_a_date_is_not_in_the_time_zone_of_this_machine(monkeypatch, zone):
    now = datetime.datetime.now(datetime.timezone.utc)
    date = email.utils.format_datetime(now + datetime.timedelta(hours=1), usegmt=True)
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "IST-5:30")
            time.tzset()
            assert 3000 <= retry_after({"retry-after": date.replace("GMT", zone)}) <= 3600
    finally:
        time.tzset()


def test_there_may_be_no_header():
    assert retry_after({}) == retry_after(None) == 0
