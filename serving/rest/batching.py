"""Batching: concurrent requests share one call of the model.

A call takes everything that has arrived, so a batch grows with the load and a single request never
waits for others. Short calls run in the event loop, because passing a call to a thread and
back takes longer than a short call. Long calls run in a thread. No request is dropped: every
accepted request gets an answer or an error.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from serving.predict_text import Outputs
from serving.rest.errors import ApiError, overloaded
from serving.rest.metrics import Metrics
from serving.rest.models import LoadedModel

INLINE_BYTES = 16 * 2**10
"""Most bytes of reviews in a short call: about 2 ms with the default model."""
_INLINE_SECONDS = 0.005
"""A model is too slow for the event loop if a call with `INLINE_BYTES` takes longer."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Waiting:
    """A request between its acceptance and its answer."""

    model: LoadedModel
    signature: str
    texts: Sequence[bytes]
    future: asyncio.Future[Outputs]
    size: int


class Batcher:
    """Calls models for requests; to be used in one event loop."""

    def __init__(
        self,
        max_batch: int,
        max_bytes: int,
        max_queue: int,
        metrics: Metrics,
        inline_bytes: int = INLINE_BYTES,
    ):
        """Construct the batcher; `start` starts it.

        Args:
          max_batch: most reviews in one call.
          max_bytes: most bytes of reviews in one call, unless a single request has more.
          max_queue: most reviews that are accepted and not answered.
          metrics: the metrics that record the sizes and times of the calls.
          inline_bytes: most bytes of reviews in a call that runs in the event loop.
        """
        self._max_batch = max_batch
        self._max_bytes = max_bytes
        self._max_queue = max_queue
        self._metrics = metrics
        self._inline_bytes = inline_bytes
        self._last_short = 0.0  # seconds of the last short call
        self._queued = 0
        self._fresh: list[_Waiting] = []
        self._arrivals: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)

    def start(self) -> None:
        """Start the thread; call it in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the requests that are queued."""
        self._arrivals.put(None)
        self._thread.join()

    def check_room(self, reviews: int = 1) -> None:
        """Raise an ApiError (429) if `reviews` more would exceed the queue.

        An empty queue accepts every request, so that none is refused for ever.
        """
        if self._queued and self._queued + reviews > self._max_queue:
            raise overloaded(
                f"The queue is full: {self._queued} reviews are waiting, limit {self._max_queue}; "
                "retry later"
            )

    async def call(self, model: LoadedModel, signature: str, texts: Sequence[bytes]) -> Outputs:
        """Return the outputs of a signature for `texts`, all from this model.

        Raises:
          ApiError: the queue is full (429), or the model cannot read the texts (400).
        """
        self.check_room(len(texts))
        loop = self._loop
        assert loop is not None
        waiting = _Waiting(model, signature, texts, loop.create_future(), sum(map(len, texts)))
        self._queued += len(texts)
        self._metrics.queue.set(self._queued)
        self._fresh.append(waiting)
        if len(self._fresh) == 1:
            # The batch also gets the other requests that the loop has already received.
            loop.call_soon(self._flush)
        try:
            return await waiting.future
        finally:
            self._queued -= len(texts)
            self._metrics.queue.set(self._queued)

    def _flush(self) -> None:
        """Answer the requests of this turn of the loop, or pass them to the thread."""
        fresh, self._fresh = self._fresh, []
        short = sum(waiting.size for waiting in fresh) <= self._inline_bytes
        if not short or self._last_short > _INLINE_SECONDS:
            for waiting in fresh:
                self._arrivals.put(waiting)
            return
        groups: dict[object, list[_Waiting]] = {}
        for waiting in fresh:
            groups.setdefault(_key(waiting), []).append(waiting)
        for group in groups.values():
            while group:
                count = self._fitting(group)
                _deliver(group[:count], self._answer(group[:count]))
                del group[:count]

    def _work(self) -> None:
        assert self._loop is not None
        groups: dict[object, list[_Waiting]] = {}
        running = True
        while running or groups:
            while running:
                try:
                    arrived = self._arrivals.get(block=not groups)
                except queue.Empty:
                    break
                if arrived is None:
                    running = False
                else:
                    groups.setdefault(_key(arrived), []).append(arrived)
            if not groups:
                continue
            key = next(iter(groups))
            group = groups.pop(key)
            count = self._fitting(group)
            if group[count:]:
                groups[key] = group[count:]
            answers = self._answer(group[:count])
            self._loop.call_soon_threadsafe(_deliver, group[:count], answers)

    def _fitting(self, group: list[_Waiting]) -> int:
        """Return how many of the first requests of `group` one call takes, at least one."""
        reviews = size = 0
        for position, waiting in enumerate(group):
            reviews += len(waiting.texts)
            size += waiting.size
            if position and (reviews > self._max_batch or size > self._max_bytes):
                return position
        return len(group)

    def _answer(self, batch: list[_Waiting]) -> list[Outputs | Exception]:
        first = batch[0]
        texts = [text for waiting in batch for text in waiting.texts]
        start = time.perf_counter()
        try:
            outputs = first.model.call(first.signature, texts)
        except Exception as error:
            # One bad request must not fail the others of its batch.
            if len(batch) > 1:
                return [answer for waiting in batch for answer in self._answer([waiting])]
            return [_as_api_error(error)]
        seconds = time.perf_counter() - start
        if sum(waiting.size for waiting in batch) <= self._inline_bytes:
            self._last_short = seconds
        self._metrics.call.observe(seconds)
        self._metrics.batch.observe(len(texts))
        self._metrics.reviews.inc(len(texts))
        if len(batch) == 1:
            return [outputs]
        answers: list[Outputs | Exception] = []
        begin = 0
        for waiting in batch:
            end = begin + len(waiting.texts)
            answers.append({name: values[begin:end] for name, values in outputs.items()})
            begin = end
        return answers


def _key(waiting: _Waiting) -> object:
    """Return what the requests of one batch have in common."""
    if waiting.model.signatures[waiting.signature].per_review:
        return waiting.model, waiting.signature
    return waiting


def _deliver(batch: list[_Waiting], answers: list[Outputs | Exception]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.future.done():
            continue
        if isinstance(answer, Exception):
            waiting.future.set_exception(answer)
        else:
            waiting.future.set_result(answer)


def _as_api_error(error: Exception) -> ApiError:
    import tensorflow as tf

    if isinstance(error, tf.errors.InvalidArgumentError):
        return ApiError(HTTPStatus.BAD_REQUEST, _reason(error.message))
    _log.error("the model failed: %s", error, exc_info=error)
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, f"the model failed: {type(error).__name__}")


def _reason(message: str) -> str:
    """Return the line of TensorFlow's message that precedes the name of the failed node."""
    lines = [line.strip() for line in message.splitlines()]
    ends = [number for number, line in enumerate(lines) if line.startswith("[[{{node")]
    if ends and ends[0]:
        return lines[ends[0] - 1]
    return next((line for line in reversed(lines) if line), "the model cannot read the input")
