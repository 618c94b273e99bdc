"""Every command of the tutorial, in its order, as a reader calls them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive, pytest.mark.xdist_group("tutorial")]

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "tutorial" / "index.md"
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = "--- block {} ---"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Return the output of each block of commands, after all of them ran in one shell."""
    home = tmp_path_factory.mktemp("home")
    blocks = _COMMANDS.findall(PAGE.read_text(encoding="utf-8"))
    marked = [f"echo '{_MARK.format(number)}'\n{block}" for number, block in enumerate(blocks)]
    script = "set -eu\n" + "\n".join(marked)
    # The environment is that of the tests, which need not be the .venv of the checkout.
    script = script.replace(
        ". .venv/bin/activate\n", f"export PATH={Path(sys.executable).parent}:$PATH\n"
    )
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("PIPELINE_")
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=CHECKOUT,
        env={**environ, "HOME": str(home), "PYTHONPATH": str(CHECKOUT), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=850,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return re.split(r"--- block \d+ ---\n", done.stdout)[1:]


def _with(printed, word):
    [output] = [text for text in printed if word in text]
    return output


def test_the_counts_on_the_page_are_those_of_the_run(printed):
    first_run, second_run = (text for text in printed if "reviews   " in text)
    [shown] = re.findall(r"^reviews   .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown in first_run.splitlines()
    assert "\nblessed (not compared: " in first_run
    assert shown in second_run.splitlines()
    assert re.search(r"^Transform +cached", second_run, re.MULTILINE)
    assert re.search(r"^Trainer +done", second_run, re.MULTILINE)


def test_the_rejected_line_is_the_odd_one(printed):
    assert "label: eleven" in _with(printed, '{"file"')


def test_the_predictions_on_the_page_are_those_of_the_model(printed):
    [shown] = [text for text in _OUTPUT.findall(PAGE.read_text("utf-8")) if "\t" in text]
    answers = [line.split("\t") for line in _with(printed, "Best phone").splitlines()]
    expected = [line.split("\t") for line in shown.splitlines()]
    assert [(line[0], line[2]) for line in answers] == [(line[0], line[2]) for line in expected]
    for answer, other in zip(answers, expected, strict=True):
        assert float(answer[1]) == pytest.approx(float(other[1]), abs=0.15)


def test_both_runs_pushed_a_model_or_one_was_not_better(printed):
    assert 1 <= len(printed[-1].split()) <= 2
