"""The generated part of each file is what the code generates now."""

import re

import pytest

from core import exit_codes
from pipeline.config import PRESETS
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


def test_the_page_of_the_settings_names_each_preset():
    text = (CHECKOUT / "docs/reference/settings.md").read_text(encoding="utf-8")
    named = re.search(r"a file in `pipeline/presets/`: ([^.]+)\.", text)
    assert re.findall(r"`(\w+)`", named[1]) == sorted(file.stem for file in PRESETS.glob("*.yaml"))
