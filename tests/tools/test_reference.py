"""The pages of docs/reference/ that are generated are those that the code generates now."""

import re
from typing import Annotated, Literal

import pytest
from pydantic import Field

from core import exit_codes
from core.settings import Section
from tools.reference import FOLDER, PAGES, _type, cell, docstrings

# Imports TFX.
SLOW = {"artifacts.md"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PAGES]
)
def test_a_committed_page_is_what_the_code_generates(name):
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run `make reference` and commit the page"


class Example(Section):
    """A section."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    """A share; None is not allowed."""
    kind: Literal["a", "b"] | None = None
    """A kind
    on two lines."""
    missing: int = 1


def test_the_docstring_of_a_field_is_found_and_a_missing_one_is_an_error():
    with pytest.raises(ValueError, match=r"Example\.missing has no docstring"):
        docstrings(Example)


def test_a_group_that_does_something_by_itself_has_a_section():
    page = PAGES["commands.md"]()
    assert "## `amazon-reviews runs`\n" in page
    assert "## `amazon-reviews runs compare`\n" in page
    assert "## `amazon-reviews image`\n" not in page


def test_types_and_bounds_are_words():
    fields = Example.model_fields
    assert _type(fields["share"]) == "number ≥ 0, ≤ 1"
    assert _type(fields["kind"]) == "`a`, `b` or `null`"
    assert cell("None a|b\n  c") == "`null` a\\|b c"


def test_the_page_of_the_exit_codes_has_all_of_them():
    rows = re.findall(r"^\| (\d+) \|", (FOLDER / "exit-codes.md").read_text(), re.MULTILINE)
    assert list(map(int, rows)) == sorted(
        value for name, value in vars(exit_codes).items() if name.isupper()
    )
