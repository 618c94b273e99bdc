"""The generated pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.reference.artifacts import artifacts_page
from tools.reference.commands import commands_page
from tools.reference.exit_codes import exit_codes_page
from tools.reference.settings import settings_page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "exit-codes.md": exit_codes_page,
    "artifacts.md": artifacts_page,
}
"""Name of a page -> the function that generates it."""
