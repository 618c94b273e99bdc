"""The progress of `amazon-reviews predict --input`."""

import io

from rich.console import Console

from cli import scoring
from core import progress


def shown(is_terminal):
    """Return what the bar prints while two units of work are half done."""
    printed, handlers = io.StringIO(), len(progress.LOGGER.handlers)
    console = Console(file=printed, force_terminal=is_terminal, width=100)
    with scoring.ShownProgress(console.status("inspecting the input"), "review"):
        progress.report("bytes", 0, 1000)
        for source, reviews, size in (("0", 1200, 300), ("1", 34, 100), ("1", 45, 200)):
            progress.report("reviews", reviews, source=source)
            progress.report("bytes", size, source=source)
        progress.report("tasks", 7, 8)  # Flink reports its tasks too.
    assert len(progress.LOGGER.handlers) == handlers
    return printed.getvalue()


def test_the_line_adds_up_the_reviews_and_bytes_of_all_units(monkeypatch):
    monkeypatch.setattr(scoring, "_SECONDS_BETWEEN_LINES", 0)
    assert "1,245 reviews, 50%" in shown(is_terminal=True)
    # No line has the reviews of a batch without its bytes.
    lines = ["0 reviews, 0%", "1,200 reviews, 30%", "1,234 reviews, 40%", "1,245 reviews, 50%"]
    assert shown(is_terminal=False).splitlines() == lines


def test_without_a_terminal_a_line_appears_only_every_few_seconds():
    assert shown(is_terminal=False) == ""
