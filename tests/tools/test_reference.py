"""The generated part of each file is what the code generates now."""

import re

import pytest

from core import exit_codes
from tools.reference import CHECKOUT, GENERATED, with_generated_part

ARTIFACTS = "docs/reference/artifacts.md"
SLOW = pytest.param(ARTIFACTS, marks=pytest.mark.slow)  # it imports TFX


@pytest.mark.parametrize("name", [*sorted(GENERATED.keys() - {ARTIFACTS}), SLOW])
def test_a_committed_file_is_what_the_code_generates(name):
    committed = (CHECKOUT / name).read_text(encoding="utf-8")
    assert committed == with_generated_part(name), "run `make reference` and commit the file"


def test_the_page_of_the_exit_codes_has_all_of_them():
    rows = re.findall(
        r"^\| (\d+) \|", (CHECKOUT / "docs/reference/exit-codes.md").read_text(), re.MULTILINE
    )
    assert list(map(int, rows)) == sorted(
        value for name, value in vars(exit_codes).items() if name.isupper()
    )
