"""The scores of a batch in parts."""

import numpy as np
import pytest

from serving.batch import scorer
from serving.batch.scorer import Scorer
from serving.predict_text import load_predict_text
from tests.serving.models import Ngrams, save_ngrams

pytestmark = pytest.mark.slow

TEXTS = [f"review {n}: {'good ' * (n % 7)}É{'!' * (n % 3)}".encode() for n in range(500)]


def test_scores_are_those_of_predict_text_whatever_the_parts(tmp_path, monkeypatch):
    model = save_ngrams(Ngrams(), tmp_path)
    scored, wanted = Scorer(model), load_predict_text(model)(TEXTS)
    for size in (1, 1000, 1 << 20):
        monkeypatch.setattr(scorer, "_BYTES_AT_ONCE", size)
        found = scored.score(TEXTS)
        np.testing.assert_array_equal(found.probability, wanted["probability"])
        np.testing.assert_array_equal(found.label, wanted["label"])
    assert scored.is_fast
    assert len(scored.score([]).label) == 0
