"""Every command of the guide to the look at data; the run itself only with --exhaustive."""

import pytest

from tests.page_commands import read_page, run_blocks

PAGE = read_page("how-to/check-data.md")


@pytest.mark.slow
def test_the_looks_print_what_is_on_the_page(tmp_path):
    _, first, second = run_blocks(PAGE.commands[:3], tmp_path)
    *shown, last = (text.replace("/home/you", str(tmp_path)) for text in PAGE.outputs)
    for text in shown:
        lines = [line.rstrip() for line in text.splitlines()]
        printed = [line.rstrip() for line in first.splitlines()]
        at = printed.index(lines[0])
        assert printed[at : at + len(lines)] == lines
    assert second.endswith(last)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_run_of_the_page_starts_with_the_settings_of_the_look(tmp_path):
    *_, printed = run_blocks(PAGE.commands, tmp_path)
    assert "\nread as   CSV separated by semicolons: label `Kategorie`" in printed
    assert "\npushed to " in printed
