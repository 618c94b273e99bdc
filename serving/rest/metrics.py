"""The metrics of the REST server, in the format of Prometheus."""

from __future__ import annotations

from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from preprocessing.labels import Labels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
MAX_CLASSES = 100
"""Greatest number of classes with a time series of their own. A client of Prometheus must not have
a series for each of thousands of values."""
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The metrics of one server.

    Attributes:
      reviews: the classified reviews.
      queue: the reviews that are accepted and not answered.
      batch: the reviews in a call of the model.
      call: the seconds of a call of the model.
      loads: the attempts to load a version, with the label `result`: `loaded` or `rejected`.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own: Any = {"namespace": "amazon_reviews", "registry": self._registry}
        self._requests = Counter("requests", "Answered requests.", ["kind", "code"], **own)
        self._latency = Histogram(
            "request_seconds",
            "Seconds from the headers of a request to its answer.",
            ["kind"],
            buckets=_SECONDS,
            **own,
        )
        self.reviews = Counter("reviews", "Classified texts, those of /explain included.", **own)
        self.queue = Gauge("queue", "Texts accepted and not answered.", **own)
        self.batch = Histogram("batch_size", "Texts in one call.", buckets=_SIZES, **own)
        self.call = Histogram("call_seconds", "Seconds of one call.", buckets=_SECONDS, **own)
        self._version = Gauge("model_version", "The version that answers.", **own)
        self._predicted = Counter(
            "predicted",
            "Answers with this class, for the classes of the version that answers. The classes "
            f"after the first {MAX_CLASSES} are counted together, as the class ''.",
            ["class"],
            **own,
        )
        self._classes: tuple[Labels | None, list[Counter]] = (None, [])
        self.loads = Counter("model_loads", "Attempts to load a version.", ["result"], **own)

    def switch(self, version: int, labels: Labels) -> None:
        """Record that another version answers; with other classes their counts begin at 0.

        Args:
          version: the number of the version.
          labels: its classes.
        """
        self._version.set(version)
        if labels != self._classes[0]:
            self._predicted.clear()
            names = labels.names[:MAX_CLASSES] + ("",) * (labels.number > MAX_CLASSES)
            self._classes = labels, [self._predicted.labels(name) for name in names]

    def predicted(self, labels: Labels, found: np.ndarray) -> None:
        """Count answers by class.

        Nothing is counted if a version with other classes has replaced the one that answered.

        Args:
          labels: the classes of the version.
          found: the predicted labels, int64 [reviews].
        """
        current, counters = self._classes
        if labels != current:
            return
        for index, number in enumerate(np.bincount(np.minimum(found, MAX_CLASSES)).tolist()):
            if number:
                counters[index].inc(number)

    def answered(self, kind: str, code: int, seconds: float) -> None:
        """Count an answered request.

        Args:
          kind: the name of its handler, such as `predict`.
          code: the status of its answer.
          seconds: the seconds from its headers to its answer.
        """
        self._requests.labels(kind, str(int(code))).inc()
        self._latency.labels(kind).observe(seconds)

    def render(self) -> bytes:
        """Return the metrics in the text format `CONTENT_TYPE`."""
        return generate_latest(self._registry)
