"""Render what a command printed to a terminal as an SVG picture.

    script -qec "amazon-reviews run" typescript
    python -m tools.terminal_picture typescript docs/images/run.svg --title "amazon-reviews run"

The picture refers to no font and to no other file: it looks the same without a network.
"""

from __future__ import annotations

import argparse
import inspect
import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_CODE = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])")


def main() -> None:
    """Read a recording of `script` and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--title", default="")
    parser.add_argument("--width", type=int, default=84, help="characters in a line")
    arguments = parser.parse_args()
    # In text mode Python would read the carriage returns as ends of lines.
    recording = arguments.recording.read_bytes().decode("utf-8")
    lines = last_screen(_without_script_lines(recording))
    arguments.picture.write_text(picture(lines, arguments.title, arguments.width), encoding="utf-8")


def _without_script_lines(recording: str) -> str:
    """Return the recording without the first and last line that `script` itself adds."""
    return re.sub(r"(?m)^Script (started|done) on .*\n?", "", recording)


def last_screen(recording: str) -> list[str]:
    """Return the lines that a terminal shows in the end, with their codes for colours.

    The function supports only the control codes that Rich uses to draw a table again: up, start of
    the line, and clear the line.
    """
    lines, row = [""], 0
    position = 0
    while position < len(recording):
        code = _CODE.match(recording, position)
        if code:
            number, kind = code.groups()
            if kind == "m":
                lines[row] += code[0]
            elif kind == "A":
                row = max(0, row - int(number or 1))
            elif kind == "K":
                lines[row] = ""
            position = code.end()
            continue
        character = recording[position]
        if character == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        elif character != "\r":
            lines[row] += character
        position += 1
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def picture(lines: list[str], title: str, width: int) -> str:
    """Return an SVG of a terminal window with `lines`, `width` characters wide."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=False)
    template = inspect.signature(console.export_svg).parameters["code_format"].default
    template = re.sub(r"@font-face \{.*?\}\n", "", template, flags=re.DOTALL)
    template = template.replace("font-family: Fira Code, monospace", f"font-family: {_FONTS}")
    template = template.replace("<!-- Generated with Rich https://www.textualize.io -->\n", "")
    return console.export_svg(title=title, code_format=template, unique_id="terminal")


if __name__ == "__main__":
    main()
