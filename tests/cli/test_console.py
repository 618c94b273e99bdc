"""Texts of a user in the terminal: control characters are escaped, and no text is lost."""

import io
import json
import logging

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli import console as console_module
from cli.console import LocaleConsole, json_text, print_table
from cli.serve import VisibleFormatter
from core.errors import InputError, UserError, visible

EVIL = "a\x1b[31mred\x1b[2J\x00\x7f\x9b1mz\u202egpj.\u2066exe"
SHOWN = r"a\x1b[31mred\x1b[2J\x00\x7f\x9b1mz\u202egpj.\u2066exe"


def printed(*objects, live=False):
    """Return what a terminal gets without the codes of Rich itself."""
    file = io.StringIO()
    console = LocaleConsole(
        file=file,
        force_terminal=True,
        width=200,
        markup=False,
        highlight=False,
        emoji=False,
        color_system=None,
    )
    if live:
        with Live(objects[0], console=console):
            pass
    else:
        console.print(*objects, soft_wrap=True)
    return file.getvalue()


def table():
    found = Table(box=None)
    found.add_column(EVIL, overflow="fold")
    found.add_row(Text(EVIL, style="red"))
    return found


@pytest.mark.parametrize("content", [EVIL, Text(EVIL), Text.assemble((EVIL, "bold"), EVIL)])
def test_control_characters_are_escaped_in_lines(content):
    assert printed(content).removesuffix("\n") in (SHOWN, SHOWN * 2)


def test_control_characters_are_escaped_in_tables_and_live_displays():
    for live in (False, True):
        text = printed(table(), live=live)
        # Rich finds the width of a column before, so the text is on several lines.
        assert "".join(text.split()).count(SHOWN) >= 2
        assert "\x1b[31m" not in text and "\x1b[2J" not in text


def test_a_table_is_complete_in_a_narrow_terminal(monkeypatch):
    file = io.StringIO()
    narrow = LocaleConsole(file=file, force_terminal=True, width=20, color_system=None)
    monkeypatch.setattr(console_module, "out", narrow)
    shown = Table("run", "data", box=None, pad_edge=False)
    shown.add_row("2026-11-30T03:35:27.589610", "/data/of the shop/reviews")
    print_table(shown)
    assert "2026-11-30T03:35:27.589610  /data/of the shop/reviews\n" in file.getvalue()
    assert narrow.width == 20


def test_square_brackets_are_no_markup():
    assert printed("[x] [bold]a[/bold] :smile:") == "[x] [bold]a[/bold] :smile:\n"


def test_letters_tabs_and_line_breaks_are_kept():
    text = "ä 日本語 \N{GRINNING FACE}\tb\nc"
    assert visible(text) == text


@pytest.mark.parametrize("kind", [UserError, InputError])
def test_the_message_of_an_error_has_no_control_characters(kind):
    assert str(kind(f"{EVIL}\n{EVIL}")) == f"{SHOWN} {SHOWN}"


def test_json_for_the_terminal_has_no_control_characters():
    text = json_text({EVIL: ["ä"]})
    assert visible(text) == text and "ä" in text
    assert json.loads(text) == {EVIL: ["ä"]}


def test_a_log_line_of_the_server_has_no_control_characters():
    record = logging.makeLogRecord({"msg": "the model failed: %s", "args": (EVIL,)})
    assert VisibleFormatter("%(message)s").format(record) == f"the model failed: {SHOWN}"
