"""Tests of YAML in settings."""

import pytest

from core.overrides import dump_yaml, load_yaml

TEXTS = [
    "1e3",
    "-2E-3",
    "+1.5e3",
    "0x10",
    "0010",
    "1:30",
    "2026-01-01",
    "yes",
    "null",
    "~",
    "",
    "=",
]


@pytest.mark.parametrize("one_line", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_looks_like_another_value_remains_a_text(text, one_line):
    value = {text: text, "list": [text, 1e-5, None, True, 1000.0]}
    assert load_yaml(dump_yaml(value, one_line=one_line)) == value
