"""Requests and answers from the public documentation of TensorFlow Serving's REST API."""

import base64
import codecs
import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.examples import example
from tests.serving.rest.running import MODEL, PREDICT

GOOD, BAD = {"label": 1, "probability": 0.9}, {"label": 0, "probability": 0.1}
NONE = {"outputs": {"label": [], "probability": []}}
TEXT = {"signature_name": "predict_text"}
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "serve.md"
# A block with a curl command, and the next block if it is an answer.
_REQUEST = re.compile(
    r"^```\n(curl .*?)\n```\n(?:[^`]*?\n```\n(\{.*?)\n```$)?", re.DOTALL | re.MULTILINE
)


def b64(text):
    return {"b64": base64.b64encode(example(text=text)).decode()}


def rounded(value):
    """Return a JSON value with float32 numbers that differ in the last digit made equal."""
    return json.loads(json.dumps(value), parse_float=lambda number: round(float(number), 6))


@pytest.mark.parametrize(
    "request_, answer",
    [
        # Row format: plain values, or objects with one value for each named input.
        ({**TEXT, "instances": ["good", "bad"]}, {"predictions": [GOOD, BAD]}),
        ({**TEXT, "instances": [{"texts": "good"}]}, {"predictions": [GOOD]}),
        ({**TEXT, "instances": [{"texts": {"b64": "Z29vZA=="}}]}, {"predictions": [GOOD]}),
        # Column format: a single tensor, or an object of named tensors.
        (
            {**TEXT, "inputs": ["good", "bad"]},
            {"outputs": {"label": [1, 0], "probability": [0.9, 0.1]}},
        ),
        ({**TEXT, "inputs": {"texts": ["bad"]}}, {"outputs": {"label": [0], "probability": [0.1]}}),
        ({**TEXT, "inputs": []}, NONE),
        # Binary values, and the default signature.
        ({"instances": [b64("good one"), b64("no")]}, {"predictions": [GOOD, BAD]}),
        ({"signature_name": "", "instances": [b64("good")]}, {"predictions": [GOOD]}),
        (codecs.BOM_UTF8 + b'{"signature_name": "predict_text", "inputs": []}', NONE),
        ({**TEXT, "instances": [{"b64": "Z29vZA"}]}, {"predictions": [GOOD]}),
        # A single output has no name.
        (
            {"signature_name": "transform_features", "instances": [b64("a b"), b64("c")]},
            {"predictions": [["a", "b"], ["c", "-"]]},
        ),
        (
            {**TEXT, "instances": ["g\u00f6\u00f6d", "\u826f good\u0000"], "comment": 1},
            {"predictions": [BAD, GOOD]},
        ),
    ],
)
def test_predictions(server, request_, answer):
    for path in (PREDICT, f"{MODEL}/versions/3:predict"):
        got = server.post(path, request_)
        assert (got.status, rounded(got.json)) == (200, answer)
        assert got.headers["content-type"] == "application/json"
        assert got.headers["x-model-version"] == "3"


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "Invalid JSON: EOF"),
        (b'{"instances": ["\\ud800"]}', "Invalid JSON: "),
        ({"instances": ["a"], "inputs": ["a"]}, "either instances or inputs is required"),
        (
            {"signature_name": "nothing", "instances": ["a"]},
            "signature_name: the model has predict_text, serving_default, transform_features, not "
            "nothing",
        ),
        ({**TEXT, "instances": "a"}, "instances: Input should be a valid array"),
        ({**TEXT, "instances": []}, "instances is empty"),
        ({**TEXT, "instances": [{"b64": "*"}]}, "instances.0: "),
        ({**TEXT, "instances": [{"texts": "a", "b": "c"}]}, "instances.0: must be a string, or "),
        ({**TEXT, "inputs": {"texts": ["a"], "b": []}}, "inputs: Input should be a valid array"),
        (
            {"instances": ["no Example"]},
            "Could not parse example input, value: 'no Example'; set signature_name to ",
        ),
        ({"instances": [{"b64": ""}]}, "Name: <unknown>, Feature: text "),
    ],
)
def test_wrong_requests(server, body, message):
    got = server.post(PREDICT, body)
    assert got.status == 400
    assert list(got.json) == ["error"]
    assert got.json["error"].startswith(message)


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("POST", "/v1/models/half:predict", 404),
        ("POST", f"{MODEL}:classify", 405),
        ("GET", f"{MODEL}/versions/9", 404),
        ("GET", "/v1/models/%ff%00", 404),
        ("PUT", "/healthz", 405),
    ],
)
def test_wrong_addresses(server, method, path, status):
    body = json.dumps({**TEXT, "instances": ["a"]})
    got = server.request(method, path, body if method == "POST" else None)
    assert got.status == status
    assert list(got.json) == ["error"]


@pytest.mark.parametrize("path", [MODEL, f"{MODEL}/versions/3"])
def test_status_and_metadata(server, path):
    good = {"error_code": "OK", "error_message": ""}
    version = {"version": "3", "state": "AVAILABLE", "status": good}
    assert server.get(path).json == {"model_version_status": [version]}
    got = server.get(f"{path}/metadata").json
    assert got["model_spec"] == {"name": "amazon_reviews", "signature_name": "", "version": "3"}
    definitions = got["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "predict_text", "transform_features"} <= set(definitions)
    assert definitions["predict_text"]["inputs"] == {
        "texts": {
            "dtype": "DT_STRING",
            "tensor_shape": {"dim": [{"size": "-1"}]},
            "name": "predict_text_texts:0",
        }
    }


def test_health_and_metrics(server):
    health = server.get("/healthz").json
    assert (health["status"], health["model"], health["version"]) == ("ok", "amazon_reviews", "3")
    server.predict("good")
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        text = server.get(path).content.decode()
        assert 'amazon_reviews_requests_total{code="200",kind="predict"}' in text
        assert "amazon_reviews_model_version 3.0" in text


def test_head_is_get_without_the_content(server):
    got = server.request("HEAD", "/healthz")
    assert (got.status, got.content) == (200, b"")


def test_the_server_explains(server):
    got = server.post("/explain", {"text": "a good <b>phone</b>"})
    assert got.status == 200
    assert round(got.json["probability"], 6) == 0.9
    effects = {part["text"]: part["effect"] for part in got.json["parts"] if "effect" in part}
    assert effects == {"a": 0.0, "good": pytest.approx(4.3944, abs=1e-3), "<b>phone</b>": 0.0}


def test_the_server_explains_the_first_words_of_a_long_review(server):
    parts = server.post("/explain", {"text": "word " * 60}).json["parts"]
    # One of the 50 reviews of a request is the whole text.
    assert sum("effect" in part for part in parts) == 49


@pytest.mark.parametrize("document", [{}, {"text": " "}, {"text": "a" * 6000}])
def test_wrong_explain_requests(server, document):
    assert server.post("/explain", document).status == 400


def test_the_requests_of_the_guide_are_answered(server):
    requests = _REQUEST.findall(GUIDE.read_text(encoding="utf-8"))
    assert len(requests) == 6
    for command, shown in requests:
        words = shlex.split(command.replace("\\\n", " "))
        address = urlsplit(words[-1])
        assert (words[0], address.netloc) == ("curl", "127.0.0.1:8501")
        if "-d" in words:
            answer = server.request("POST", address.path, words[words.index("-d") + 1])
        else:
            answer = server.get(address.path)
        is_error = shown.startswith('{"error"')
        assert answer.status == (400 if is_error else 200), command
        if is_error:
            assert answer.json == json.loads(shown)
        elif shown:
            assert answer.json.keys() == json.loads(shown).keys()
