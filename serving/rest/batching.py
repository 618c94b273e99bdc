"""The queue in which concurrent requests are batched to share one call of the model.

A call contains all requests that have arrived. So a batch grows with the load, and a single request
never waits for others. Short calls run in the event loop, because passing a call to a thread and
back takes longer than a short call. Long calls run in a thread. No request is dropped: every
accepted request gets an answer or an error.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from starlette.exceptions import HTTPException

from serving.predict_text import Outputs
from serving.rest.limits import Limits
from serving.rest.metrics import Metrics
from serving.rest.model import LoadedModel, UnreadableInputError

INLINE_BYTES = 16 * 2**10
"""Greatest size of the reviews in a short call, which takes about 2 ms with the default model."""
INLINE_SECONDS = 0.005
"""Greatest time of a short call. If the last one took longer, the next calls are long calls."""

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
    """The queue of requests for calls of models.

    A call has at most as many reviews and bytes as a single request may have.

    Args:
      limits: the limits of a request and of the queue.
      metrics: the metrics that are updated.
    """

    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits = limits
        self._metrics = metrics
        self._last_short = 0.0  # seconds of the last short call
        self._queued = 0
        self._fresh: deque[_Waiting] = deque()
        self._long: deque[_Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")

    def stop(self) -> None:
        """End the thread after the calls of models that it runs."""
        self._thread.shutdown()

    def check_room(self, reviews: int = 1) -> None:
        """Check that the queue has room for further reviews.

        An empty queue accepts any number, because a client would retry a refused request for ever.

        Args:
          reviews: the number of further reviews.

        Raises:
          HTTPException: the queue would be longer than its limit (429).
        """
        if self._queued and self._queued + reviews > self._limits.queue:
            waiting = f"{self._queued} texts are waiting, limit {self._limits.queue}"
            message = f"The queue is full: {waiting}; retry later"
            raise HTTPException(429, message, {"retry-after": "1"})

    async def call(self, model: LoadedModel, signature: str, texts: Sequence[bytes]) -> Outputs:
        """Return the outputs of a signature, in a call that other requests may share.

        Args:
          model: the model.
          signature: one of `model.inputs`.
          texts: the values of its input.

        Returns:
          Output -> its values, each of shape [texts, ...].

        Raises:
          HTTPException: the model cannot read a text (400) or failed (500), or the queue is full
            (429).
        """
        self.check_room(len(texts))
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outputs] = loop.create_future()
        self._fresh.append(_Waiting(model, signature, texts, future, sum(map(len, texts))))
        self._queued += len(texts)
        self._metrics.queue.set(self._queued)
        if len(self._fresh) == 1:
            # The batch then also contains the other requests that the loop has already received.
            loop.call_soon(self._flush, loop)
        try:
            return await future
        finally:
            self._queued -= len(texts)
            self._metrics.queue.set(self._queued)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer the requests that arrived in this turn of the loop, or pass them to the thread."""
        fresh, self._fresh = self._fresh, deque()
        short = sum(waiting.size for waiting in fresh) <= INLINE_BYTES
        if short and self._last_short <= INLINE_SECONDS:
            while fresh:
                batch = self._next_batch(fresh)
                _deliver(batch, self._answer(batch))
        else:
            self._long += fresh
            self._thread.submit(self._work, loop)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer all requests in the queue of long calls, in the thread."""
        while self._long:
            batch = self._next_batch(self._long)
            loop.call_soon_threadsafe(_deliver, batch, self._answer(batch))

    def _next_batch(self, pending: deque[_Waiting]) -> list[_Waiting]:
        """Remove and return the first requests of `pending` that may share a call (one or more)."""
        first = pending.popleft()
        batch, reviews, size = [first], len(first.texts), first.size
        while pending and first.signature in first.model.per_review:
            other = pending[0]
            reviews += len(other.texts)
            size += other.size
            is_same = (other.model, other.signature) == (first.model, first.signature)
            if not is_same or reviews > self._limits.reviews or size > self._limits.body_bytes:
                break
            batch.append(pending.popleft())
        return batch

    def _answer(self, batch: list[_Waiting]) -> list[Outputs | Exception]:
        texts = [text for waiting in batch for text in waiting.texts]
        start = time.perf_counter()
        try:
            outputs = batch[0].model.call(batch[0].signature, texts)
            seconds = time.perf_counter() - start
            ends = itertools.accumulate(len(waiting.texts) for waiting in batch)
            answers: list[Outputs | Exception] = [
                {name: values[end - len(waiting.texts) : end] for name, values in outputs.items()}
                for waiting, end in zip(batch, ends, strict=True)
            ]
        except Exception as error:
            # One bad request must not fail the others of its batch.
            if len(batch) > 1:
                return [answer for waiting in batch for answer in self._answer([waiting])]
            return [_http_error(error)]
        if sum(waiting.size for waiting in batch) <= INLINE_BYTES:
            self._last_short = seconds
        self._metrics.call.observe(seconds)
        self._metrics.batch.observe(len(texts))
        self._metrics.reviews.inc(len(texts))
        return answers


def _deliver(batch: list[_Waiting], answers: list[Outputs | Exception]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.future.done():
            continue  # the client has closed its connection
        if isinstance(answer, Exception):
            waiting.future.set_exception(answer)
        else:
            waiting.future.set_result(answer)


def _http_error(error: Exception) -> HTTPException:
    if isinstance(error, UnreadableInputError):
        return HTTPException(400, str(error))
    _log.error("the model failed: %s", error, exc_info=error)
    return HTTPException(500, f"the model failed: {type(error).__name__}")
