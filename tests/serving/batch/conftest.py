"""Batch scoring with a small model. The imports are inside, because `make test-fast` loads this."""

import pytest


@pytest.fixture(scope="session")
def model(root):
    return str(root / "serving" / "1")


@pytest.fixture
def small_units(monkeypatch):
    """Pieces and units of a few hundred lines, and batches of 300 probabilities."""
    from preprocessing.reading import pieces
    from serving.batch import work

    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 4_000)
    monkeypatch.setattr(work, "_BYTES_PER_UNIT", 9_000)
    monkeypatch.setattr(work, "SCORES_AT_ONCE", 300)


@pytest.fixture
def score(model, tmp_path):
    """Return a function that scores files with the small model; its output is in `tmp_path`."""
    from preprocessing.reading.records import ReadOptions
    from serving.batch.run import score_files

    def do(
        *inputs,
        output="scores.csv",
        model=model,
        options=None,
        beam_args=(),
        all_probabilities=False,
    ):
        words, target = list(map(str, inputs)), str(tmp_path / output)
        chosen = options or ReadOptions()
        return score_files(words, target, str(model), chosen, beam_args, all_probabilities)

    return do
