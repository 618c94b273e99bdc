"""Requests and answers from the public documentation of TensorFlow Serving's REST API."""

import base64
import json

import pytest

from tests.serving.rest.models import example
from tests.serving.rest.running import MODEL, PREDICT

GOOD, BAD = {"label": 1, "probability": 0.9}, {"label": 0, "probability": 0.1}
TEXT = {"signature_name": "predict_text"}


def b64(text):
    return {"b64": base64.b64encode(example(text)).decode()}


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
        ({**TEXT, "inputs": []}, {"outputs": {"label": [], "probability": []}}),
        # Binary values, and the default signature.
        ({"instances": [b64("good one"), b64("no")]}, {"predictions": [GOOD, BAD]}),
        ({"instances": [{"examples": b64("good")}]}, {"predictions": [GOOD]}),
        ({"signature_name": "", "instances": [b64("good")]}, {"predictions": [GOOD]}),
        ({**TEXT, "instances": [{"b64": "Z29vZA"}]}, {"predictions": [GOOD]}),
        # A single output has no name; one whose name ends in _bytes is binary.
        (
            {"signature_name": "transform_features", "instances": [b64("a b"), b64("c")]},
            {
                "predictions": [
                    [{"b64": "YQ=="}, {"b64": "Yg=="}],
                    [{"b64": "Yw=="}, {"b64": "LQ=="}],
                ]
            },
        ),
        (
            {"signature_name": "transform_features", "inputs": [b64("a")]},
            {"outputs": [[{"b64": "YQ=="}]]},
        ),
        # Text of any script, escaped or not; unknown keys are ignored.
        (
            {**TEXT, "instances": ["g\u00f6\u00f6d", "\u826f good\u0000"]},
            {"predictions": [BAD, GOOD]},
        ),
        ({**TEXT, "instances": ["good"], "comment": 1}, {"predictions": [GOOD]}),
    ],
)
def test_predictions(server, request_, answer):
    got = server.post(PREDICT, request_)
    assert (got.status, rounded(got.json)) == (200, answer)
    assert got.headers["content-type"] == "application/json"
    assert got.headers["x-model-version"] == "3"


@pytest.mark.parametrize("path", [PREDICT, f"{MODEL}/versions/3:predict"])
def test_a_version_may_be_named(server, path):
    assert server.post(path, {**TEXT, "instances": ["good"]}).status == 200


WRONG = "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: "
NOT_STRING = "is not of expected type: string"


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "JSON Parse error: The document is empty"),
        (b'{"instances": [', "JSON Parse error: unexpected end of data"),
        (b'{"instances": ["\xff"]}', "JSON Parse error:"),
        (b'{"instances": ["\\ud800"]}', "JSON Parse error:"),
        (b"[" * 100_00, "JSON Parse error:"),
        (b"[]", "JSON Value: [] Is not object"),
        (b'"text"', 'JSON Value: "text" Is not object'),
        (b"{}", "Missing 'inputs' or 'instances' key"),
        ({"instances": ["a"], "inputs": ["a"]}, "expecting only one of 'inputs' or 'instances'"),
        ({"signature_name": 7, "instances": ["a"]}, "'signature_name' key must be a string value."),
        (
            {"signature_name": "nothing", "instances": ["a"]},
            'Serving signature name: "nothing" not found in signature def',
        ),
        ({**TEXT, "instances": "a"}, "Excepting 'instances' to be an list/array"),
        ({**TEXT, "instances": []}, "No values in 'instances' array"),
        ({**TEXT, "instances": [5]}, f"{WRONG}JSON Value: 5 Type: Number {NOT_STRING}"),
        ({**TEXT, "instances": [None]}, f"{WRONG}JSON Value: null Type: Null {NOT_STRING}"),
        ({**TEXT, "instances": [True]}, f"{WRONG}JSON Value: true Type: True {NOT_STRING}"),
        ({**TEXT, "instances": [["a"]]}, f"{WRONG}Encountered list at unexpected level"),
        ({**TEXT, "instances": [{"b64": "*"}]}, f"{WRONG}Unable to base64 decode"),
        (
            {**TEXT, "instances": ["a", {"texts": "b"}]},
            "Expecting value/list but got object at item 1",
        ),
        ({**TEXT, "instances": [{"texts": "b"}, "a"]}, "Expecting object but got list at item 1"),
        ({**TEXT, "instances": [{"text": "a"}]}, "keys must be equal to: texts"),
        ({**TEXT, "instances": [{}]}, "keys must be equal to: texts"),
        (
            {**TEXT, "instances": [{"texts": 5}]},
            "key: texts of 'instances' list. Error: INVALID_ARG",
        ),
        ({**TEXT, "inputs": {"text": ["a"]}}, "Missing named input: texts in 'inputs' object."),
        ({**TEXT, "inputs": "a"}, "texts must be a list of strings"),
        ({**TEXT, "inputs": [1]}, f"JSON Value: 1 Type: Number {NOT_STRING}"),
        ({"instances": ["no Example"]}, "Could not parse example input, value: 'no Example'"),
        ({"instances": [{"b64": ""}]}, "text"),
    ],
)
def test_wrong_requests(server, body, message):
    got = server.post(PREDICT, body)
    assert got.status == 400
    assert list(got.json) == ["error"]
    assert message in got.json["error"]


@pytest.mark.parametrize(
    "method, path, status, message",
    [
        ("POST", "/v1/models/half:predict", 404, "Servable not found for request: Latest(half)"),
        (
            "POST",
            f"{MODEL}/versions/9:predict",
            404,
            "Servable not found for request: Specific(amazon_reviews, 9)",
        ),
        ("POST", f"{MODEL}/labels/x:predict", 400, "Unrecognized servable version label: x"),
        ("POST", f"{MODEL}:classify", 400, "Expected classify signature method_name to be"),
        ("POST", f"{MODEL}:regress", 400, "Expected regress signature method_name to be"),
        ("POST", f"{MODEL}/versions/{2**70}:predict", 400, "Failed to convert version: "),
        ("GET", PREDICT, 400, f"Malformed request: GET {PREDICT}"),
        ("POST", MODEL, 400, f"Malformed request: POST {MODEL}"),
        ("GET", "/v1/nothing", 400, "Malformed request: GET /v1/nothing"),
        ("GET", "/v1/models", 400, "Missing model name in request."),
        ("GET", "/v1/models/half", 404, "Could not find any versions of model half"),
        ("GET", f"{MODEL}/versions/9", 404, "Could not find version 9 of model amazon_reviews"),
        ("GET", "/v1/models/half/metadata", 404, "Servable not found for request: Latest(half)"),
        ("GET", "/nothing", 404, "Not Found: GET /nothing"),
        ("PUT", "/healthz", 405, "Method Not Allowed: PUT /healthz"),
    ],
)
def test_wrong_addresses(server, method, path, status, message):
    body = json.dumps({"signature_name": "serving_default", "instances": ["a"]})
    got = server.request(method, path, body if method == "POST" else None)
    assert got.status == status
    assert got.json["error"].startswith(message)


@pytest.mark.parametrize("path", [MODEL, f"{MODEL}/versions/3"])
def test_status(server, path):
    version = {
        "version": "3",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    assert server.get(path).json == {"model_version_status": [version]}


@pytest.mark.parametrize("path", [f"{MODEL}/metadata", f"{MODEL}/versions/3/metadata"])
def test_metadata(server, path):
    got = server.get(path).json
    assert got["model_spec"] == {"name": "amazon_reviews", "signature_name": "", "version": "3"}
    definitions = got["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "predict_text", "transform_features"} <= set(definitions)
    assert definitions["predict_text"]["method_name"] == "tensorflow/serving/predict"
    assert definitions["predict_text"]["inputs"] == {
        "texts": {
            "dtype": "DT_STRING",
            "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False},
            "name": "predict_text_texts:0",
        }
    }
    assert definitions["predict_text"]["outputs"]["probability"]["dtype"] == "DT_FLOAT"


def test_health_and_metrics(server):
    health = server.get("/healthz").json
    assert (health["status"], health["model"], health["version"]) == ("ok", "amazon_reviews", "3")
    server.predict("good")
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        text = server.get(path).content.decode()
        assert 'amazon_reviews_requests_total{code="200",kind="predict"}' in text
        assert "amazon_reviews_model_version 3.0" in text
