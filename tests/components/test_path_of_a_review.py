"""The path of a review from `ReadUnit` to the written shard is short and straight."""

import itertools
import sys
import threading
from pathlib import Path

import pytest

import components
from components import tfrecords
from components.review_example_gen.read_unit import ReadUnit
from components.review_example_gen.units import Source, in_units
from preprocessing.reading import pieces
from preprocessing.reading.columns import Layout
from preprocessing.reading.pieces import cut_file

pytestmark = pytest.mark.slow

ROOT = Path(components.__file__).parents[1]
OURS = tuple(str(ROOT / name) for name in ("components", "preprocessing"))
EXPRESSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<lambda>")
ONCE_A_BATCH = ("components/review_example_gen/read_unit.py", "add")
"""A function that `ReadUnit` calls once for each batch."""


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return (module, function) for the calls of our functions for one batch, in their order.

    Calls that are made only once, such as opening a file, and cached calls are not in the list.
    """
    # With these sizes a batch has a few lines, and each batch is written immediately.
    monkeypatch.setattr(pieces, "_READ", 400)
    monkeypatch.setattr(tfrecords, "_BUFFER", 1)
    file = tmp_path / "reviews.txt"
    file.write_text("".join(f"__label__2 Great: it works, {n:03}\n" for n in range(100)))
    cut = cut_file(str(file), Layout("fasttext"))
    (unit,) = in_units([Source("all", piece) for piece in cut])
    entered = []

    def trace(frame, event, _):
        code = frame.f_code
        is_ours = code.co_filename.startswith(OURS) and code.co_name not in EXPRESSIONS
        if event == "call" and is_ours:
            entered.append((str(Path(code.co_filename).relative_to(ROOT)), code.co_name))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        [done] = ReadUnit(frozenset(), str(tmp_path)).process(unit, {}, {})
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert sum(sum(counts.values()) for counts in done.counts.values()) == 100
    *_, before, last = [at for at, call in enumerate(entered) if call == ONCE_A_BATCH]
    # The calls between the accounts of two batches are all steps of one batch.
    return [
        ("components/review_example_gen/read_unit.py", "process"),
        *entered[before + 1 : last + 1],
    ]


def test_a_review_passes_at_most_18_functions(path):
    assert len(set(path)) <= 18, "\n".join(map(str, path))


def test_a_review_returns_to_few_modules(path):
    modules = [module for module, _ in path]
    stays = [module for module, _ in itertools.groupby(modules)]
    returns = len(stays) - len(set(stays))
    assert returns <= 6, "\n".join(stays)
