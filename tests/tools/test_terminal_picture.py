"""The picture of a terminal in the README."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from tools.terminal_picture import last_screen, picture

COMMITTED = Path(__file__).parents[2] / "docs" / "images" / "run.svg"


def test_what_is_drawn_again_is_shown_as_it_was_last():
    recording = "begin\r\n\x1b[?25l\x1b[1mold\x1b[0m\r\nold\r\n"
    recording += "\r\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[32mnew\x1b[0m\r\n\r\n"
    assert last_screen(recording) == ["begin", "\x1b[32mnew\x1b[0m"]


def test_a_picture_has_the_text_and_loads_nothing():
    svg = picture(["\x1b[32mblessed\x1b[0m"], "run", 20)
    assert "blessed" in svg
    assert not re.search(r"@font-face|url\([\"']?http|href=[\"']http", svg)


def test_the_committed_picture_is_small_and_loads_nothing():
    text = COMMITTED.read_text(encoding="utf-8")
    assert len(text) < 60_000
    assert not re.search(r"@font-face|url\([\"']?http|href=[\"']http", text)
    shown = "".join(ElementTree.fromstring(text).itertext()).replace("\xa0", " ")
    assert "ReviewExampleGen" in shown and "pushed to" in shown
