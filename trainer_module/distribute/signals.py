"""Signals as events of a queue."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def signals_into(events: queue.SimpleQueue[Any]) -> Iterator[None]:
    """Turn SIGTERM and SIGINT into events; outside the main thread leave them unchanged."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda n, frame: events.put(signal.Signals(n)))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
