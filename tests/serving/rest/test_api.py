"""Requests and answers from the public documentation of TensorFlow Serving's REST API."""

import base64
import codecs
import gzip
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
def test_each_form_of_a_request_has_its_form_of_predictions(server, request_, answer):
    for path in (PREDICT, f"{MODEL}/versions/3:predict"):
        got = server.post(path, request_)
        assert (got.status, rounded(got.json)) == (200, answer)
        assert got.headers["content-type"] == "application/json"
        assert got.headers["x-model-version"] == "3"


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "the body is empty; send JSON, with its Content-Length"),
        (b" ", "Invalid JSON: EOF"),
        (b'{"instances": ["\\ud800"]}', "Invalid JSON: "),
        (
            '{"instances": ["schön"]}'.encode("cp1252"),
            "the body is not JSON in UTF-8: byte 20 (0xf6) is not UTF-8, convert it",
        ),
        (
            '{"instances": ["a"]}'.encode("utf-16"),
            "the body is not JSON in UTF-8: byte 1 (0xff) is not UTF-8, convert it",
        ),
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
            {**TEXT, "instances": ["a", {"txet": "a"}]},
            "instances.1: the input of predict_text is named texts, not txet",
        ),
        (
            {**TEXT, "inputs": {"wrong": ["a"]}},
            "inputs: the input of predict_text is named texts, not wrong",
        ),
        (
            {"instances": [{"texts": "a"}]},
            "instances.0: the input of serving_default is named examples, not texts",
        ),
        ({"instances": [{"b64": ""}]}, "Name: <unknown>, Feature: text "),
    ],
)
def test_a_wrong_request_is_400_with_what_is_wrong(server, body, message):
    got = server.post(PREDICT, body)
    assert got.status == 400
    assert list(got.json) == ["error"]
    assert got.json["error"].startswith(message)


@pytest.mark.parametrize("signature", [None, "serving_default", "transform_features"])
@pytest.mark.parametrize(
    "value",
    ["no Example", {"b64": "/w=="}, {"b64": "CgL/"}, {"b64": "AAAA"}, "a long text " * 500],
)
def test_what_is_no_example_is_400_without_a_quote(server, signature, value, caplog):
    named = {"signature_name": signature} if signature else {}
    got = server.post(PREDICT, {**named, "instances": [b64("good"), value]})
    assert got.status == 400
    assert got.json == {
        "error": "Could not parse example input; set signature_name to predict_text for texts"
    }
    assert caplog.text == ""


def test_texts_that_are_not_utf8_are_answered(server):
    got = server.post(PREDICT, {**TEXT, "instances": [{"b64": "/w=="}]})
    assert (got.status, rounded(got.json)) == (200, {"predictions": [BAD]})


@pytest.mark.parametrize("path", ["half:predict", "half", "half/metadata"])
def test_another_model_is_404(server, path):
    check_error(
        server.request("POST" if ":" in path else "GET", f"/v1/models/{path}", b"{}"),
        404,
        "No such model is served: half; this server has amazon_reviews",
    )


@pytest.mark.parametrize("version", ["9", "999", "stable"])
@pytest.mark.parametrize("path", [":predict", "", "/metadata"])
def test_another_version_is_404(server, version, path):
    method = "POST" if path == ":predict" else "GET"
    got = server.request(method, f"{MODEL}/versions/{version}{path}", b"{}")
    check_error(got, 404, f"No such version is served: {version}; version 3 answers")


@pytest.mark.parametrize(
    "method, path, message",
    [
        ("GET", f"{MODEL}/versions/3:regress", "regress is not supported; use POST " + PREDICT),
        ("POST", f"{MODEL}/labels/stable:predict", "version labels are not supported; use "),
        ("GET", f"{MODEL}/labels/stable/metadata", "version labels are not supported; use "),
        ("POST", f"{MODEL}:explain", f"No such address: {MODEL}:explain; predictions: POST "),
        ("POST", f"{PREDICT}/", f"No such address: {PREDICT}/; predictions: POST {PREDICT}"),
        ("GET", "/v1/models", f"No such address: /v1/models; predictions: POST {PREDICT}"),
        ("GET", "/v1/models/%ff%00", "No such model is served: "),
        ("GET", "/" + "long" * 1000, f"No such address: /{'long' * 25}"[:117]),
    ],
)
def test_other_addresses_are_404_with_the_remedy(server, method, path, message):
    got = server.request(method, path, b"{}" if method == "POST" else None)
    check_error(got, 404, message)
    assert len(got.content) < 300


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("GET", f"{MODEL}:classify", "POST"),
        *((method, PREDICT, "POST") for method in ("GET", "PUT", "DELETE", "OPTIONS", "PATCH")),
        ("GET", f"{MODEL}/versions/3:predict", "POST"),
        ("GET", "/explain", "POST"),
        ("POST", MODEL, "GET, HEAD"),
        ("PUT", "/healthz", "GET, HEAD"),
    ],
)
def test_another_method_is_405_with_the_right_one(server, method, path, allowed):
    got = server.request(method, path)
    check_error(got, 405, f"{method} is not allowed here; use ")
    assert sorted(got.headers["allow"].split(", ")) == allowed.split(", ")
    assert server.request("HEAD", PREDICT).status == 405


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "x-unknown", "gzip, identity"])
@pytest.mark.parametrize("path", [PREDICT, "/explain"])
def test_a_compressed_request_is_415(server, encoding, path):
    body = gzip.compress(b'{"text": "good"}')
    got = server.request("POST", path, body, {"Content-Encoding": encoding})
    check_error(got, 415, "compressed requests are not supported; send the body without Content-")


def test_a_gzip_body_without_its_header_is_415(server):
    got = server.request("POST", PREDICT, gzip.compress(b'{"text": "good"}'))
    check_error(got, 415, "the body is compressed with gzip; send it uncompressed")


@pytest.mark.parametrize("coding", ["gzip, chunked", "deflate,chunked"])
def test_a_request_that_is_compressed_for_the_transfer_is_415(server, coding):
    body = gzip.compress(b'{"text": "good"}')
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    got = server.request("POST", PREDICT, chunks, {"Transfer-Encoding": coding})
    check_error(got, 415, "compressed requests are not supported; ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=iso-8859-1"},
        {"Content-Encoding": "identity"},
        {"Expect": "100-continue"},
        {"Accept": "text/html", "Accept-Encoding": "gzip"},
    ],
)
def test_headers_that_change_nothing(server, headers):
    """TensorFlow Serving ignores them too, so clients send them."""
    body = json.dumps({**TEXT, "instances": ["good \xfc"]}, ensure_ascii=False).encode()
    for content in (body, iter([body[:9], body[9:]])):  # with its length, and in chunks
        got = server.request("POST", PREDICT, content, headers)
        assert (got.status, rounded(got.json)) == (200, {"predictions": [GOOD]})


def check_error(got, status, message):
    """Check that an answer is an error in the documented form."""
    assert got.status == status
    assert list(got.json) == ["error"]
    assert got.json["error"].startswith(message)
    assert got.headers["content-type"] == "application/json"


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


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "text: Field required"),
        ({"text": " \n"}, "text: the text is blank; send one with a word"),
        ({"text": "a" * 6000}, "text: String should have at most 5000 characters"),
    ],
)
def test_wrong_explain_requests(server, document, message):
    answer = server.post("/explain", document)
    assert (answer.status, answer.json) == (400, {"error": message})


def test_the_requests_of_the_guide_are_answered(server):
    requests = _REQUEST.findall(GUIDE.read_text(encoding="utf-8"))
    assert len(requests) == 7
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
