"""Which requests share a call of the model, and what happens if the queue is full."""

import asyncio
import threading
import time

import numpy as np
import pytest
from starlette.exceptions import HTTPException

from serving.rest import batching
from serving.rest.batching import Batcher
from serving.rest.limits import Limits
from serving.rest.metrics import Metrics


class Model:
    """A model that records its calls; each lasts until `go` is set, and for `seconds`."""

    per_review = ("predict_text",)

    def __init__(self, seconds=0.0):
        self.seconds, self.calls, self.in_loop = seconds, [], []
        self.entered, self.go = threading.Event(), threading.Event()

    def call(self, signature, texts):
        self.calls.append((signature, list(texts)))
        self.in_loop.append(threading.current_thread() is threading.main_thread())
        self.entered.set()
        assert self.go.wait(60)
        time.sleep(self.seconds)
        if b"bad" in texts:
            raise RuntimeError("bad")
        return {"length": np.array([len(text) for text in texts])}


@pytest.fixture(autouse=True)
def all_requests_are_long(monkeypatch):
    monkeypatch.setattr(batching, "INLINE_BYTES", 0)


def answers(model, requests, **limits):
    """Send a first request, and the others while it is being answered; return all answers."""

    async def run():
        batcher = Batcher(Limits(**limits), Metrics())
        tasks = []
        for signature, texts in requests:
            tasks.append(asyncio.create_task(batcher.call(model, signature, texts)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # the batcher passes it on in the next turn
            if len(tasks) == 1:
                await asyncio.to_thread(model.entered.wait, 60)
        model.go.set()
        # The end of the server answers the requests that are queued.
        await asyncio.to_thread(batcher.stop)
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)

    return asyncio.run(run())


def lengths(answers):
    return [answer["length"].tolist() for answer in answers]


@pytest.mark.parametrize("limits", [{"reviews": 2, "queue": 5}, {"body_bytes": 4}])
def test_requests_that_wait_share_calls_that_are_not_larger_than_the_limits(limits):
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
    assert isinstance(bad, HTTPException)
    assert bad.status_code == 500


def test_an_empty_queue_accepts_even_a_large_request():
    assert lengths(answers(Model(), [("predict_text", [b"a"] * 7)], queue=5)) == [[1] * 7]


@pytest.mark.parametrize(
    ("seconds", "turns", "in_loop"),
    [
        (0.0, [[b"a", b"bb", b"ccc"], [b"a"]], [True, True]),
        (0.0, [[b"a" * 11]], [False]),  # a long request
        (0.02, [[b"a"], [b"b"], [b"c"]], [True, False, False]),  # a slow model
    ],
)
def test_short_requests_of_one_turn_share_a_call_in_the_loop(monkeypatch, seconds, turns, in_loop):
    monkeypatch.setattr(batching, "INLINE_BYTES", 10)
    # A busy machine may interrupt even a fast call for longer than the usual limit.
    monkeypatch.setattr(batching, "INLINE_SECONDS", seconds / 2 or 60)
    model = Model(seconds)
    model.go.set()

    async def run():
        batcher = Batcher(Limits(), Metrics())
        for texts in turns:
            calls = [batcher.call(model, "predict_text", [text]) for text in texts]
            assert lengths(await asyncio.gather(*calls)) == [[len(text)] for text in texts]
        batcher.stop()

    asyncio.run(run())
    assert [texts for _, texts in model.calls] == turns
    assert model.in_loop == in_loop


class Version(Model):
    """A version of a model, whose outputs name it."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        self.go.set()

    def call(self, signature, texts):
        super().call(signature, texts)
        return {"version": np.full(len(texts), self.number)}


@pytest.mark.parametrize("inline_bytes", [0, 100])
def test_requests_before_and_after_a_reload_are_answered_by_their_own_version(
    monkeypatch, inline_bytes
):
    monkeypatch.setattr(batching, "INLINE_BYTES", inline_bytes)
    old, new = Version(1), Version(2)
    models = [old, old, new, old, new, new]

    async def run():
        batcher = Batcher(Limits(), Metrics())
        calls = [batcher.call(model, "predict_text", [b"a", b"b"]) for model in models]
        found = await asyncio.gather(*calls)
        batcher.stop()
        return [answer["version"].tolist() for answer in found]

    assert asyncio.run(run()) == [[model.number] * 2 for model in models]
    # Neighbours of one version share a call.
    assert [len(texts) for _, texts in old.calls] == [4, 2]
    assert [len(texts) for _, texts in new.calls] == [2, 4]
