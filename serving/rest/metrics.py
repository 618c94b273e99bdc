"""The metrics of the REST server, in the format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The metrics of one server.

    Attributes:
      reviews: reviews that the model has classified, those of `/explain` included.
      queue: reviews that are accepted and not answered.
      batch: reviews in one call of the model.
      call: seconds of one call of the model.
      version: the version of the current model.
      loads: attempts to load a version, by result.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        prefix = "amazon_reviews"
        self._requests = Counter(
            f"{prefix}_requests", "Answered requests.", ["kind", "code"], registry=self._registry
        )
        self._latency = Histogram(
            f"{prefix}_request_seconds",
            "Seconds from the headers of a request to its answer.",
            ["kind"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.reviews = Counter(f"{prefix}_reviews", "Classified reviews.", registry=self._registry)
        self.queue = Gauge(
            f"{prefix}_queue", "Reviews accepted and not answered.", registry=self._registry
        )
        self.batch = Histogram(
            f"{prefix}_batch_size",
            "Reviews in one call of the model.",
            buckets=_SIZES,
            registry=self._registry,
        )
        self.call = Histogram(
            f"{prefix}_call_seconds",
            "Seconds of one call of the model.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.version = Gauge(
            f"{prefix}_model_version", "The version that answers.", registry=self._registry
        )
        self.loads = Counter(
            f"{prefix}_model_loads",
            "Attempts to load a version.",
            ["result"],
            registry=self._registry,
        )

    def answered(self, kind: str, code: int, seconds: float) -> None:
        """Count an answered request.

        Args:
          kind: the kind of the request, such as `predict`.
          code: HTTP status of the answer.
          seconds: time from the headers of the request to the answer.
        """
        self._requests.labels(kind, str(int(code))).inc()
        self._latency.labels(kind).observe(seconds)

    def render(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)
