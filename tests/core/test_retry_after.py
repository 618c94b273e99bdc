"""The header Retry-After: seconds, a date, or nothing that can be read."""

import datetime
import email.utils

import pytest

from core.retry_after import retry_after

NOW = datetime.datetime.now(datetime.timezone.utc)


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        (email.utils.format_datetime(NOW + datetime.timedelta(hours=1), usegmt=True), 3000, 3600),
        (email.utils.format_datetime(NOW - datetime.timedelta(hours=1), usegmt=True), 0, 0),
        *((value, 0, 0) for value in ("", "soon", "-1", "1.5", "\u00b2")),
    ],
)
def test_the_pause_is_never_negative(value, least, most):
    assert least <= retry_after({"retry-after": value}) <= most
    assert least <= retry_after({"Retry-After": value}) <= most


def test_there_may_be_no_header():
    assert retry_after({}) == retry_after(None) == 0
