"""Plain sentences that a person would try first, none of which the sample contains.

The sample's generator was widened until its model did well on them, so they guard against a relapse
and do not measure how well the model does on other sentences.
"""

from pathlib import Path

_FILE = Path(__file__).with_name("everyday.txt")
SENTENCES = [tuple(line.split("\t")) for line in _FILE.read_text(encoding="utf-8").splitlines()]
"""(`positive` or `negative`, sentence), as many of one as of the other."""
