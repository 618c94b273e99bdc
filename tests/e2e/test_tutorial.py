"""Every command of the tutorial, in its order, as a reader calls them."""

import re

import pytest

from tests.page_commands import read_page, run_blocks
from tests.pages import is_alike


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("tutorial")
def test_the_commands_print_what_is_on_the_page(tmp_path):
    page = read_page("tutorial/index.md")
    outputs = run_blocks(page.commands, tmp_path)

    first_run, second_run = (text for text in outputs if "lines     " in text)
    [result] = [text for text in page.outputs if text.startswith("lines     ")]
    for line in result.replace("/home/you", str(tmp_path)).splitlines():
        printed = first_run.splitlines()
        assert any(is_alike(line, other) for other in printed), f"{line}\n{first_run}"
    counts = result.splitlines()[0]
    assert counts in second_run.splitlines()
    assert re.search(r"^Transform +cached", second_run, re.MULTILINE)
    assert re.search(r"^Trainer +done", second_run, re.MULTILINE)
    [rejected] = [text for text in outputs if '{"file"' in text]
    assert "label: eleven" in rejected

    [shown] = [text for text in page.outputs if "\t" in text]
    [answered] = [text for text in outputs if "Best phone" in text]
    pairs = zip(shown.splitlines(), answered.splitlines(), strict=True)
    assert [pair for pair in pairs if not is_alike(*pair)] == []
