"""Every command of the guide to own labels, and the preset with stars."""

import json
import re
import socket

import pytest

from tests.page_commands import read_page, run_blocks
from tests.pages import is_alike

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]


def classes_and_texts(predictions):
    """Return the first and the last column of printed predictions."""
    fields = [line.split("\t") for line in predictions.splitlines()]
    return [(columns[0], columns[-1]) for columns in fields]


def test_the_commands_print_what_is_on_the_page(tmp_path):
    page = read_page("how-to/own-labels.md")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
    outputs = run_blocks([block.replace("8599", port) for block in page.commands], tmp_path)

    [printed] = [text for text in outputs if "lines     " in text]
    [result] = [text for text in page.outputs if text.startswith("lines     ")]
    for line in result.replace("/home/you", str(tmp_path)).splitlines():
        assert any(is_alike(line, other) for other in printed.splitlines()), f"{line}\n{printed}"
    [written] = tmp_path.glob("desk/report.html")
    assert "Login &amp; password" in written.read_text(encoding="utf-8")

    [shown] = [text for text in page.outputs if "\t" in text]
    [answered] = [text for text in outputs if "\tmy box was crushed\n" in text]
    assert classes_and_texts(answered) == classes_and_texts(shown)
    [answer] = [text for text in outputs if '"predictions"' in text]
    [prediction] = json.loads(answer[answer.index('{"predictions"') :])["predictions"]
    assert prediction["class"] == "Refund"
    assert len(prediction["probabilities"]) == 12
    assert sum(prediction["probabilities"]) == pytest.approx(1, abs=1e-5)


def test_the_preset_with_stars_pushes_a_model_that_is_better_than_the_constant_answer(tmp_path):
    run = "amazon-reviews run --config stars --set paths.root=$HOME/stars\n"
    predict = (
        "amazon-reviews predict --config stars --set paths.root=$HOME/stars"
        " 'total rubbish, avoid at all costs' 'simply perfect, could not be happier'\n"
    )
    printed, answers = run_blocks([run, predict], tmp_path)
    figures = re.search(r"^accuracy  (0\.\d+) .* would give (0\.\d+)", printed, re.MULTILINE)
    accuracy, constant = map(float, figures.groups())
    assert 0.95 > accuracy > 2 * constant
    assert "\npushed to " in printed
    assert [line[0] for line in answers.splitlines()] == ["1", "5"]
