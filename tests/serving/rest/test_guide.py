"""The requests of the guide `docs/how-to/serve.md` get answers of the form that it shows."""

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "serve.md"
# A block with a curl command, and the next block if it is an answer.
_REQUEST = re.compile(
    r"^```\n(curl .*?)\n```\n(?:[^`]*?\n```\n(\{.*?)\n```$)?", re.DOTALL | re.MULTILINE
)
REQUESTS = _REQUEST.findall(GUIDE.read_text(encoding="utf-8"))


def form(value):
    """Return a JSON value with the types of its numbers and texts in place of them."""
    if isinstance(value, dict):
        return {name: form(item) for name, item in value.items()}
    if isinstance(value, list):
        forms = [form(item) for item in value]
        return sorted({json.dumps(item, sort_keys=True) for item in forms})
    return "number" if isinstance(value, int | float) else "text"


@pytest.mark.parametrize(("command", "shown"), REQUESTS)
def test_a_request_of_the_guide(server, command, shown):
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "curl"
    address = urlsplit(words[-1])
    assert address.netloc == "127.0.0.1:8501"
    if "-d" in words:
        answer = server.request("POST", address.path, words[words.index("-d") + 1])
    else:
        answer = server.get(address.path)
    wanted = json.loads(shown) if shown else None
    assert answer.status == (400 if wanted and "error" in wanted else 200)
    if wanted and "error" in wanted:
        assert answer.json == wanted
    elif wanted:
        assert form(answer.json) == form(wanted)


def test_the_guide_has_requests_of_every_kind():
    addresses = {urlsplit(shlex.split(command)[-1]).path for command, _ in REQUESTS}
    assert addresses == {
        "/v1/models/amazon_reviews:predict",
        "/v1/models/amazon_reviews",
        "/explain",
    }
    assert len(REQUESTS) == 6
    assert sum(bool(shown) for _, shown in REQUESTS) == 5
