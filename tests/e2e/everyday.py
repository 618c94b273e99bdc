"""Plain sentences that a person would try first, written without a look at the sample's phrases."""

from pathlib import Path

_FILE = Path(__file__).with_name("everyday.txt")
SENTENCES = [tuple(line.split("\t")) for line in _FILE.read_text(encoding="utf-8").splitlines()]
"""(`positive` or `negative`, sentence), as many of one as of the other."""
