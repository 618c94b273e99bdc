"""`:classify` as TensorFlow Serving's documentation describes it, and models of several classes."""

import asyncio
import base64

import numpy as np
import pytest
import tensorflow as tf

from preprocessing.labels import Labels
from serving.rest.batching import Batcher
from serving.rest.client import ask_server
from serving.rest.limits import Limits
from serving.rest.metrics import MAX_CLASSES, Metrics
from serving.rest.model import LoadedModel
from serving.rest.settings import Server
from tests.serving.rest.models import SIGNATURES, TOPICS, Small, push_classes
from tests.serving.rest.running import MODEL, PREDICT, running

CLASSIFY = f"{MODEL}:classify"
BEST, OTHER = pytest.approx(10 / 14), pytest.approx(1 / 14)
"""The probabilities of the predicted class and of each other class."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("topics") / "serving"
    push_classes(folder, 1)
    return folder


@pytest.fixture(scope="module")
def topics(folder):
    """A running server of a model with five classes."""
    with running(folder, reviews=50) as found:
        yield found


def pairs(predicted):
    return [[name, BEST if n == predicted else OTHER] for n, name in enumerate(TOPICS.names)]


@pytest.mark.parametrize(
    "value",
    ["c1", ["c1"], {"b64": base64.b64encode(b"c1").decode()}, [{"b64": "YzE="}]],
    ids=["text", "list", "bytes", "list of bytes"],
)
@pytest.mark.parametrize("named", [{}, {"signature_name": "classify"}, {"signature_name": ""}])
def test_every_class_has_a_score(topics, value, named):
    request = {**named, "examples": [{"text": value}, {"text": "c3"}]}
    for path in (CLASSIFY, f"{MODEL}/versions/1:classify"):
        answer = topics.post(path, request)
        assert (answer.status, answer.json) == (200, {"results": [pairs(1), pairs(3)]})
        assert answer.headers["x-model-version"] == "1"


def test_two_classes_are_classified_too(server):
    answer = server.post(CLASSIFY, {"examples": [{"text": "good"}, {"text": "bad"}]})
    [good, bad] = answer.json["results"]
    assert good == [["negative", pytest.approx(0.1)], ["positive", pytest.approx(0.9)]]
    assert bad == [["negative", pytest.approx(0.9)], ["positive", pytest.approx(0.1)]]


def test_an_example_precedes_the_context_and_may_have_further_features(topics):
    request = {
        "context": {"text": "c4", "shop": 7},
        "examples": [{"price": [1, 2.5]}, {"text": "c0", "new": [1, 2]}],
    }
    assert topics.post(CLASSIFY, request).json == {"results": [pairs(4), pairs(0)]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "examples: Field required"),
        ({"examples": []}, "examples: List should have at least 1 item"),
        ({"examples": ["c1"]}, "examples.0: Input should be an object"),
        ({"examples": [{"text": None}]}, "examples.0.text: must be a number, a string, "),
        ({"examples": [{"text": ["c1", 1]}]}, "examples.0.text: must be a number, a string, "),
        ({"examples": [{"n": 2**64, "text": "c1"}]}, "examples.0.n: must be a number, a string, "),
        ({"examples": [{"n": [0.5, 10**99]}]}, "examples.0.n: must be a number, a string, "),
        ({"examples": [{"text": True}]}, "examples.0.text: must be a number, a string, "),
        ({"examples": [{"text": {"b64": "*"}}]}, "examples.0.text: "),
        ({"examples": [{}]}, "Name: <unknown>, Feature: text "),
        (
            {"examples": [{"text": ["c1", "c2"]}]},
            "Name: <unknown>, Key: text, Index: 0.  Can't parse serialized Example, or the feature "
            "has too many values.",
        ),
        ({"examples": [{"text": 5}]}, "Name: <unknown>, Key: text"),
        (
            {"signature_name": "predict_text", "examples": [{"text": "c1"}]},
            "signature_name: classify requires the signature classify, not predict_text",
        ),
        (b"{", "Invalid JSON: "),
    ],
)
def test_a_wrong_request_is_400_with_what_is_wrong(topics, body, message):
    answer = topics.post(CLASSIFY, body)
    assert answer.status == 400
    assert answer.json["error"].startswith(message)


def test_the_limit_of_a_request_is_that_of_predictions(topics):
    answer = topics.post(CLASSIFY, {"examples": [{"text": "c1"}] * 51})
    assert (answer.status, answer.json) == (413, {"error": "The request has 51 texts, limit 50"})


def test_predictions_by_row_and_by_column(topics):
    text = {"signature_name": "predict_text"}
    by_row = topics.post(PREDICT, {**text, "instances": ["c1", "c3"]}).json["predictions"]
    scores = [[score for _, score in pairs(n)] for n in (1, 3)]
    assert by_row == [
        {"class": TOPICS.names[n], "label": n, "probabilities": row}
        for n, row in zip((1, 3), scores, strict=True)
    ]
    by_column = topics.post(PREDICT, {**text, "inputs": ["c1", "c3"]}).json["outputs"]
    assert by_column == {
        "class": [TOPICS.names[1], TOPICS.names[3]],
        "label": [1, 3],
        "probabilities": scores,
    }


def test_the_metadata_have_the_classes(topics, server):
    assert topics.get(f"{MODEL}/metadata").json["metadata"]["labels"] == {
        "names": list(TOPICS.names),
        "is_ordered": False,
        "noun": "text",
    }
    names = server.get(f"{MODEL}/metadata").json["metadata"]["labels"]["names"]
    assert names == ["negative", "positive"]


def test_words_are_explained_by_the_predicted_class(topics):
    answer = topics.post("/explain", {"text": "a c2 thing"}).json
    assert list(answer) == ["probability", "label", "class", "parts"]
    assert (answer["label"], answer["class"], answer["probability"]) == (2, TOPICS.names[2], BEST)
    effects = {part["text"]: part["effect"] for part in answer["parts"] if "effect" in part}
    # The logits are log(10 / 4) with the word and log(1 / 4) without it.
    assert effects == {"a": 0.0, "c2": pytest.approx(np.log(10), abs=1e-3), "thing": 0.0}


def test_the_answer_to_a_single_text_of_two_classes_is_that_of_before(server):
    assert list(server.post("/explain", {"text": "good"}).json) == ["probability", "label", "parts"]


def test_requests_of_several_classes_share_a_call(folder, monkeypatch):
    model, calls = LoadedModel(str(folder / "1")), []
    call = LoadedModel.call
    monkeypatch.setattr(
        LoadedModel,
        "call",
        lambda self, signature, texts: calls.append(len(texts)) or call(self, signature, texts),
    )

    async def ask():
        batcher = Batcher(Limits(), Metrics())
        requests = [batcher.call(model, "predict_text", [b"c1", b"c2"]) for _ in range(3)]
        return await asyncio.gather(*requests)

    answers = asyncio.run(ask())
    assert calls == [6]
    assert [answer["label"].tolist() for answer in answers] == [[1, 2]] * 3
    # The features of a text are padded to the longest text of a call.
    assert model.per_review == {"predict_text", "serving_default"}


def test_a_client_gets_the_label_and_the_probability_of_the_predicted_class(topics, folder):
    server = Server(port=topics.port)
    [found] = ask_server(server, str(folder / "1"), [b"a c3"])
    assert (found.label, found.probability) == (3, BEST)


def test_a_client_does_not_use_the_answer_of_another_version(topics, folder, monkeypatch):
    """The server switches between the two requests of the client."""
    state = topics.get("/healthz").json
    monkeypatch.setattr(LoadedModel, "version", 2, raising=False)
    from serving.rest import client

    plain = client._open
    monkeypatch.setattr(
        client,
        "_open",
        lambda address, *rest: (
            (state, None) if "healthz" in address else (plain(address, *rest)[0], "2")
        ),
    )
    assert ask_server(Server(port=topics.port), str(folder / "1"), [b"a c3"]) is None


def counts(metrics):
    lines = metrics.render().decode().splitlines()
    rows = [line.rsplit(" ", 1) for line in lines if line.startswith("amazon_reviews_predicted_to")]
    return {name.partition("class=")[2].rstrip("}").strip('"'): float(n) for name, n in rows}


def test_answers_are_counted_by_class(topics):
    before = topics.get("/metrics").content.decode()
    topics.post(PREDICT, {"signature_name": "predict_text", "instances": ["c3", "c3", "c0"]})
    topics.post(CLASSIFY, {"examples": [{"text": "c3"}]})
    after = topics.get("/metrics").content.decode()

    def count(text, name):
        [line] = [
            line for line in text.splitlines() if f'predicted_total{{class="{name}"}}' in line
        ]
        return float(line.rsplit(" ", 1)[1])

    assert count(after, TOPICS.names[3]) - count(before, TOPICS.names[3]) == 3
    assert count(after, TOPICS.names[0]) - count(before, TOPICS.names[0]) == 1
    # Prometheus requires these characters in a label to be escaped.
    assert r'class="50% \"off\"\n\tnow"'.replace(r"\t", "\t") in after


def test_the_number_of_time_series_is_bounded():
    metrics, labels = Metrics(), Labels(tuple(f"class {n}" for n in range(1000)))
    metrics.switch(1, labels)
    metrics.predicted(labels, np.array([0, MAX_CLASSES - 1, MAX_CLASSES, 999, 999]))
    found = counts(metrics)
    assert len(found) == MAX_CLASSES + 1
    assert (found["class 0"], found[f"class {MAX_CLASSES - 1}"], found[""]) == (1, 1, 3)


def test_other_classes_replace_the_time_series_and_the_same_keep_them():
    metrics, two, three = Metrics(), Labels(("a", "b")), Labels(("x", "y", "z"))
    metrics.switch(1, two)
    metrics.predicted(two, np.array([1, 1]))
    metrics.switch(2, two)
    assert counts(metrics) == {"a": 0, "b": 2}
    metrics.switch(3, three)
    metrics.predicted(two, np.array([1]))  # an answer of the replaced version
    metrics.predicted(three, np.array([2]))
    assert counts(metrics) == {"x": 0, "y": 0, "z": 1}


class Signed(Small):
    """A model of another program, whose labels are -1.0 and 1.0."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def predict_text(self, texts):
        good = tf.strings.regex_full_match(texts, "(?s).*good.*")
        probability = tf.where(good, self.probability, 1 - self.probability)
        return {"probability": probability, "label": tf.where(good, 1.0, -1.0)}


def test_answers_with_any_labels_are_counted(tmp_path):
    model = Signed()
    signatures = {name: getattr(model, name) for name in SIGNATURES}
    tf.saved_model.save(model, str(tmp_path / "1"), signatures)
    with running(tmp_path) as server:
        request = {"signature_name": "predict_text", "instances": ["good", "bad", "bad"]}
        answer = server.post(PREDICT, request)
        assert [row["label"] for row in answer.json["predictions"]] == [1.0, -1.0, -1.0]
        metrics = server.get("/metrics").content.decode()
    assert 'predicted_total{class="negative"} 2.0' in metrics
