"""The pause that a server requests with HTTP 429 or 503 before the next attempt."""

from __future__ import annotations

import datetime
import email.utils
from collections.abc import Mapping


def retry_after(headers: Mapping[str, str] | None) -> float:
    """Return the seconds of the header Retry-After, a number or a date; 0 if there is none.

    Args:
      headers: the headers of the response, with names in upper or lower case; None if there was no
        response.
    """
    fields = {name.lower(): value for name, value in (headers or {}).items()}
    value = fields.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError):  # Without a date, Python 3.10 raises TypeError.
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=datetime.timezone.utc)
    return max(0.0, (until - datetime.datetime.now(datetime.timezone.utc)).total_seconds())
