"""The Evaluator stores the candidate's predictions for the Examples that the check samples."""

import pytest
import tensorflow as tf

from components.evaluator import sampled
from components.sample import read_sample
from serving.predict_text import load_predict_text
from tests.components.evaluated import write_examples, write_ngram_model, write_other_model
from tests.components.test_evaluator import config, evaluate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("has_baseline", [True, False])
def test_the_predictions_of_a_sample_are_those_of_the_candidate(
    tmp_path, monkeypatch, has_baseline
):
    monkeypatch.setattr(sampled, "SIZE", 100)
    examples = write_examples(tmp_path / "examples", 240)
    models = [write_ngram_model(tmp_path / "model", 1)]
    if has_baseline:
        models.append(write_other_model(tmp_path / "other"))
    evaluation, _ = evaluate(tmp_path, examples, models, config(more=False), batched=True)
    kept = read_sample(f"{examples.uri}/Split-test", 150).examples
    found = sampled.read(evaluation.uri, kept)
    # The first 100 of the 150 with the smallest hash.
    assert sorted(found) == list(range(100))
    texts = [tf.train.Example.FromString(one).features.feature["text"] for one in kept[:100]]
    predict = load_predict_text(f"{models[0].uri}/Format-Serving")
    wanted = predict([text.bytes_list.value[0] for text in texts])["probability"]
    assert [found[n] for n in range(100)] == pytest.approx(wanted.tolist(), abs=1e-6)


def test_an_evaluation_by_the_executor_of_tfx_has_no_sample(tmp_path):
    assert sampled.read(str(tmp_path), [b"a"]) == {}


def test_samples_of_batches_make_a_sample_of_all(monkeypatch):
    monkeypatch.setattr(sampled, "SIZE", 3)
    examples = [f"example {number}".encode() for number in range(50)]
    whole = sampled.sample(examples, range(50))
    parts = [sampled.sample(examples[n : n + 7], range(n, n + 7)) for n in range(0, 50, 7)]
    assert sampled.merge(parts) == whole
    assert len(whole) == 3
    assert sampled.merge([]) == []
