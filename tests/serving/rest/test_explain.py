"""Explanations by the server."""

import pytest


def test_the_server_explains(server):
    got = server.post("/explain", {"text": "a good <b>phone</b>"})
    assert got.status == 200
    assert round(got.json["probability"], 6) == 0.9
    effects = {part["text"]: part["effect"] for part in got.json["parts"] if "effect" in part}
    assert effects == {"a": 0.0, "good": pytest.approx(4.3944, abs=1e-3), "<b>phone</b>": 0.0}


@pytest.mark.parametrize(
    "document, status",
    [({}, 400), ({"text": 1}, 400), ({"text": " "}, 400), ({"text": "a", "b": 1}, 400),
     ({"text": "a" * 6000}, 413)],
)  # fmt: skip
def test_wrong_explain_requests(server, document, status):
    assert server.post("/explain", document).status == status
