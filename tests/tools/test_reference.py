"""The pages of docs/reference/ that are generated are those that the code generates now."""

import re

import pytest

from core import exit_codes
from tools.reference import FOLDER, PAGES, page

SLOW = pytest.param("artifacts.md", marks=pytest.mark.slow)  # it imports TFX


@pytest.mark.parametrize("name", [*sorted(PAGES.keys() - {"artifacts.md"}), SLOW])
def test_a_committed_page_is_what_the_code_generates(name):
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == page(name), "run `make reference` and commit the page"


def test_the_page_of_the_exit_codes_has_all_of_them():
    rows = re.findall(r"^\| (\d+) \|", (FOLDER / "exit-codes.md").read_text(), re.MULTILINE)
    assert list(map(int, rows)) == sorted(
        value for name, value in vars(exit_codes).items() if name.isupper()
    )
