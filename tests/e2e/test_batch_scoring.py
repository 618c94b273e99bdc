"""`amazon-reviews predict --input … --output …` with a model that the pipeline has pushed."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from serving.predict_text import load_predict_text
from tests.e2e.test_pushed_model import _evaluated, _examples, _texts

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks, pytest.mark.xdist_group("finished")]


def test_scores_equal_the_evaluation_example_by_example(finished, tmp_path):
    workspace, _ = finished
    evaluated = _evaluated(
        workspace, _examples(workspace, "ReviewExampleGen", "test"), _made(tmp_path)
    )
    texts = _texts(evaluated)
    source, output = tmp_path / "reviews.txt", tmp_path / "scores.parquet"
    source.write_bytes(b"\n".join(texts))
    done = workspace.command("predict", "--input", str(source), "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{len(texts):,} reviews scored")
    assert done.stderr == ""
    scores = pq.read_table(output)
    assert scores["position"].to_pylist() == list(range(1, len(texts) + 1))
    np.testing.assert_allclose(scores["probability"], list(evaluated.values()), atol=1e-6)
    labels = ["positive" if p > 0.5 else "negative" for p in scores["probability"].to_pylist()]
    assert scores["label"].to_pylist() == labels


def test_ngrams_of_numpy_score_the_pushed_model_with_the_same_bits(finished):
    workspace, _ = finished
    predict = load_predict_text(str(workspace.pushed()[0]))
    texts = _texts(_examples(workspace, "ReviewExampleGen", "eval"))
    found = predict(texts)
    assert predict.is_fast
    for name, values in predict._by_text(texts).items():
        np.testing.assert_array_equal(found[name], values)


def _made(folder):
    made = folder / "evaluated"
    made.mkdir()
    return made
