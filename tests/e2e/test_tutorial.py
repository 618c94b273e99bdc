"""Every command of the tutorial, in its order, as a reader calls them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.pages import is_alike

_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _output_of(script, home):
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
    return done.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("tutorial")
def test_the_commands_print_what_is_on_the_page(tmp_path):
    page = (CHECKOUT / "docs/tutorial/index.md").read_text(encoding="utf-8")
    # The environment is that of the tests, which need not be the .venv of the checkout.
    activate, path = ". .venv/bin/activate\n", f"export PATH={Path(sys.executable).parent}:$PATH\n"
    blocks = [block.replace(activate, path) for block in _COMMANDS.findall(page)]
    printed = _output_of("set -eu\n" + "echo '--- block ---'\n".join(blocks), tmp_path)
    outputs = printed.split("--- block ---\n")

    first_run, second_run = (text for text in outputs if "reviews   " in text)
    [result] = [text for text in _OUTPUT.findall(page) if text.startswith("reviews   ")]
    for line in result.replace("/home/you", str(tmp_path)).splitlines():
        printed = first_run.splitlines()
        assert any(is_alike(line, other) for other in printed), f"{line}\n{first_run}"
    counts = result.splitlines()[0]
    assert counts in second_run.splitlines()
    assert re.search(r"^Transform +cached", second_run, re.MULTILINE)
    assert re.search(r"^Trainer +done", second_run, re.MULTILINE)
    [rejected] = [text for text in outputs if '{"file"' in text]
    assert "label: eleven" in rejected

    [shown] = [text for text in _OUTPUT.findall(page) if "\t" in text]
    [answered] = [text for text in outputs if "Best phone" in text]
    pairs = zip(shown.splitlines(), answered.splitlines(), strict=True)
    assert [pair for pair in pairs if not is_alike(*pair)] == []
