"""Which requests share a call of the model, and what happens if the queue is full."""

import asyncio
import threading

import numpy as np
import pytest

from serving.rest.batching import Batcher
from serving.rest.errors import ApiError
from serving.rest.metrics import Metrics
from serving.rest.models import Signature


class Model:
    """A model whose first call lasts until `go` is set."""

    signatures = {"predict_text": Signature("texts", True), "padded": Signature("texts", False)}

    def __init__(self):
        self.calls = []
        self.entered = threading.Event()
        self.go = threading.Event()

    def call(self, signature, texts):
        self.calls.append((signature, list(texts)))
        self.entered.set()
        assert self.go.wait(60)
        if b"bad" in texts:
            raise RuntimeError("bad")
        return {"length": np.array([len(text) for text in texts])}


def answers(model, requests, **limits):
    """Send a first request, and the others while it is being answered; return all answers."""

    async def run():
        batcher = Batcher(
            **{"max_batch": 100, "max_bytes": 1000, "max_queue": 100, **limits}, metrics=Metrics()
        )
        batcher.start()
        tasks = []
        for signature, texts in requests:
            tasks.append(asyncio.create_task(batcher.call(model, signature, texts)))
            await asyncio.sleep(0)
            if len(tasks) == 1:
                await asyncio.to_thread(model.entered.wait, 60)
        model.go.set()
        try:
            return await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            batcher.stop()

    return asyncio.run(run())


def lengths(answers):
    return [answer["length"].tolist() for answer in answers]


def test_requests_that_wait_share_a_call():
    model = Model()
    got = answers(
        model,
        [("predict_text", [b"a"]), ("predict_text", [b"bb", b"c"]), ("predict_text", [b"ddd"])],
    )
    assert lengths(got) == [[1], [2, 1], [3]]
    assert model.calls == [("predict_text", [b"a"]), ("predict_text", [b"bb", b"c", b"ddd"])]


@pytest.mark.parametrize("limits", [{"max_batch": 2}, {"max_bytes": 4}])
def test_a_call_is_not_larger_than_the_limits(limits):
    model = Model()
    got = answers(model, [("predict_text", [b"xx"])] * 5, **limits)
    assert lengths(got) == [[2]] * 5
    assert [len(texts) for _, texts in model.calls] == [1, 2, 2]


def test_padded_outputs_are_not_shared():
    model = Model()
    answers(model, [("padded", [b"a"])] * 3)
    assert model.calls == [("padded", [b"a"])] * 3


def test_a_request_that_fails_does_not_fail_others():
    model = Model()
    _, good, bad = answers(model, [("predict_text", [text]) for text in (b"a", b"bb", b"bad")])
    assert good["length"].tolist() == [2]
    assert isinstance(bad, ApiError)
    assert bad.status == 500


def test_a_full_queue_refuses_and_loses_nothing():
    got = answers(Model(), [("predict_text", [b"a", b"a"])] * 4, max_queue=5)
    assert lengths(got[:2]) == [[1, 1]] * 2
    assert [error.status for error in got[2:]] == [429, 429]
    assert got[2].headers == {"retry-after": "1"}


def test_an_empty_queue_accepts_even_a_large_request():
    assert lengths(answers(Model(), [("predict_text", [b"a"] * 7)], max_queue=5)) == [[1] * 7]
