"""The cause of an error, in one line."""

import pytest

from core.errors import InputError, cause


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("bad\nmore"), "ValueError: bad"),
        (RuntimeError("OSError: full [while running 'Write/x']"), "OSError: full"),
        (RuntimeError("Traceback (most recent\n  File x\nKeyError: 'a'\n"), "KeyError: 'a'"),
        (RuntimeError("in user code:\n\n  tensorflow.errors_impl.OpError: a\n"), "OpError: a"),
        (KeyError(), "KeyError"),
        (InputError("a.csv is empty"), "a.csv is empty"),
    ],
)
def test_the_cause(error, line):
    assert cause(error) == line
