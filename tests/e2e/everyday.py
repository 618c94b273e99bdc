"""Plain sentences that a person would try first, none of which the sample contains.

The generator of the sample was extended until its model classified these sentences well. So they
detect a regression, but do not measure the accuracy on other sentences.
"""

from pathlib import Path

_FILE = Path(__file__).with_name("everyday.txt")
SENTENCES = [tuple(line.split("\t")) for line in _FILE.read_text(encoding="utf-8").splitlines()]
"""(`positive` or `negative`, sentence), as many of one as of the other."""
