"""A DoFn that works on two elements of a bundle at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

_AT_ONCE = 2


class OverlappingDoFn(beam.DoFn):
    """A DoFn for units of work that take seconds; a subclass defines `result`.

    At the beginning and at the end of a unit only one thread works. Meanwhile another unit keeps
    the other cores busy. Elements must be in the global window.
    """

    def result(self, element: Any) -> Any:
        """Return the only output of an element; this is called in several threads."""
        raise NotImplementedError

    def start_bundle(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._running: deque[Future[Any]] = deque()

    def process(self, element: Any) -> Iterator[Any]:
        self._running.append(self._pool.submit(self.result, element))
        if len(self._running) == _AT_ONCE:
            yield self._running.popleft().result()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        with self._pool:
            for running in self._running:
                yield GlobalWindows.windowed_value(running.result())
