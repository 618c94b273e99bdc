"""Comparison of what a page shows with what a program prints."""

import re

_DECIMAL = re.compile(r"\b0\.\d+")
_VERSION = re.compile(r"\b\d{10}\b")
_CURVE = re.compile(r"^(curve +loss) .* in ")
_MOST = 0.03


def is_alike(line, other):
    """Return whether two lines differ at most in a version and, by less than 0.03, in decimals.

    Of the curve of a training only the number of steps is compared: its losses depend on the
    machine, and its characters on the locale.
    """
    line, other = (_CURVE.sub(r"\1 in ", text) for text in (line, other))
    one, two = (_VERSION.sub("", _DECIMAL.sub("", text)) for text in (line, other))
    if one != two:
        return False
    pairs = zip(_DECIMAL.findall(line), _DECIMAL.findall(other), strict=True)
    return all(abs(float(one) - float(two)) < _MOST for one, two in pairs)
