"""The path of a review from `ReadUnit` to the written shard is short and straight."""

import sys
import threading
from pathlib import Path

import pytest

import components
from components.review_example_gen.splits import Cap
from components.review_example_gen.stages import ReadUnit
from components.review_example_gen.units import Source, in_units
from preprocessing.reading.columns import Layout
from preprocessing.reading.cut import cut_file

pytestmark = pytest.mark.slow

ROOT = Path(components.__file__).parents[1]
OURS = tuple(str(ROOT / name) for name in ("components", "preprocessing"))
_EXPRESSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<lambda>")


def calls_of(function):
    """The functions of ours that a call enters, in their order, as (module, name)."""
    found = []

    def trace(frame, event, _):
        code = frame.f_code
        # A generator is entered again for each item; that is no new step on the way.
        is_new = event == "call" and frame.f_lasti < 2 and code.co_name not in _EXPRESSIONS
        if is_new and code.co_filename.startswith(OURS):
            found.append((code.co_filename, code.co_name))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def read(tmp_path, name, lines):
    file = tmp_path / name
    file.write_text("".join(f"{line}\n" for line in lines))
    pieces = cut_file(str(file), Layout("fasttext"))
    (unit,) = in_units([Source("all", piece) for piece in pieces])
    [done] = ReadUnit(frozenset(), str(tmp_path)).process(unit, {}, Cap())
    assert sum(done.counts.values()) == len(lines)


def test_a_review_passes_few_functions_and_returns_to_few_modules(tmp_path):
    line = "__label__2 Great: works as it should"
    calls = calls_of(lambda: read(tmp_path, "one.txt", [line]))
    began = next(n for n, (_, name) in enumerate(calls) if name == "process")
    path = [call for call in calls[began:] if not call[1].startswith("__")]
    print(*(f"{Path(file).relative_to(ROOT)}:{name}" for file, name in path), sep="\n")
    assert len(set(path)) <= 18
