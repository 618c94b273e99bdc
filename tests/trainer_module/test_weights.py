"""Weights: copies to and from a model that is sharded over servers, and the warm start."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from preprocessing import features
from preprocessing.settings import Transform
from tests.trainer_module.conftest import TRANSFORM, make_job
from trainer_module import training, weights
from trainer_module.loop.checkpoints import SaveRegularly

NGRAMS, TOKENS = (features.NGRAMS,), (features.TOKENS,)
TABLE = np.arange(10.0).reshape(5, 2)


def model(*values):
    variables = [
        tf.Variable(value, dtype=tf.float32, name=f"v{i}") for i, value in enumerate(values)
    ]
    return SimpleNamespace(variables=variables)


def values(model):
    return [variable.numpy().tolist() for variable in model.variables]


@pytest.mark.parametrize("cuts", [[], [1, 2, 4]], ids=["whole", "in four"])
def test_a_table_that_is_cut_has_each_row_once(cuts):
    plain = model(TABLE, [7.0, 8.0], 9.0)
    parts = np.split(TABLE, cuts)
    spread = model(*(0 * part for part in parts), [0.0, 0.0], 0.0)
    weights.spread(plain, spread)
    assert values(spread) == [*(part.tolist() for part in parts), [7.0, 8.0], 9.0]
    gathered = model(0 * TABLE, [0.0, 0.0], 0.0)
    weights.gather(spread, gathered)
    assert values(gathered) == values(plain)


def make_model(value):
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, kernel_initializer="zeros")])
    model.build([None, 2])
    model.set_weights([weight + value for weight in model.get_weights()])
    return model


@pytest.fixture
def export(records, tmp_path):
    """(what the model reads) -> the folder of a model whose weights are all 5."""

    def export(names, **settings):
        job = make_job(records, tmp_path / "base", **settings)
        served = tf.Module()
        served.model_variables = make_model(5.0).variables
        tf.saved_model.save(served, job.serving_model_dir)
        weights.write_origin(job, names)
        return job.serving_model_dir

    return export


@pytest.fixture
def load(records, tmp_path):
    """(base model, what is read, transform, training) -> the first weight, of 1 without it."""

    def load(base, names, transform=TRANSFORM, **settings):
        job = make_job(records, tmp_path, base_model=base, **settings)
        job = job.model_copy(update={"transform": Transform(**transform)})
        model = make_model(1.0)
        loaded = weights.warm_start(job, names, make_model(0.0), model)
        [weight] = {float(value) for array in model.get_weights() for value in array.ravel()}
        assert weight == (5.0 if loaded else 1.0)
        return loaded

    return load


def test_the_weights_of_the_same_model_are_taken(export, load, log):
    base = export(NGRAMS)
    assert load(base, NGRAMS)
    assert f"Warm start: weights of {base}" in log.text
    # Features that it does not read and the settings of a training may differ.
    assert load(base, NGRAMS, {**TRANSFORM, "max_tokens": 9}, learning_rate=0.1, epochs=9)


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"model": "text_cnn"}, "model (ngram_linear, now text_cnn)"),
        ({"hyperparameters": {"scale_floor": 0.5}}, "hyperparameters ({}, now {'scale_floor'"),
        ({"transform": {**TRANSFORM, "openings": [2, 4]}}, "transform ({'ngrams': 2, "),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_weights_of_another_model_are_not_used_and_the_difference_is_logged(
    export, load, caplog, changed, difference
):
    assert not load(export(NGRAMS), NGRAMS, **changed)
    assert f"Warm start skipped: {difference}" in caplog.text
    assert "using new weights" in caplog.text


def test_a_model_without_an_origin_is_not_used(export, load, caplog, tmp_path):
    base = export(NGRAMS)
    (tmp_path / "base" / "model" / "assets.extra" / "origin.json").unlink()
    assert not load(base, NGRAMS)
    assert "Warm start skipped: model (None, now ngram_linear)" in caplog.text


@pytest.mark.slow
def test_a_model_of_words_depends_on_the_words_and_their_settings(export, load, records, caplog):
    assets = records / "graph" / "transform_fn" / "assets"
    assets.mkdir(parents=True)
    words = assets / features.VOCABULARY
    words.write_text("good\nbad\n")
    base = export(TOKENS)
    assert load(base, TOKENS)
    for changed in ("vocabulary_size", "max_tokens"):
        assert not load(base, TOKENS, {**TRANSFORM, changed: TRANSFORM[changed] + 1})
    # `transform.vocabulary_size` is the same, and the ids mean other words.
    words.write_text("bad\ngood\n")
    assert not load(base, TOKENS)
    assert "Warm start skipped: vocabulary (" in caplog.text


def test_a_resumed_training_keeps_its_own_weights(records, tmp_path, monkeypatch):
    """The weights of the base model are only those that it began with."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    loaded, seen = [], []

    def load_weights(job, names, plain, model):
        loaded.append(job.base_model)
        return True

    def loop(model, plan, callbacks):
        """One step, after which a checkpoint is written."""
        plan.state.history.append({})
        seen.append(model.trainable_variables[0].numpy().tolist())
        model.trainable_variables[0].assign_add(tf.ones_like(model.trainable_variables[0]))
        [save] = [callback for callback in callbacks if isinstance(callback, SaveRegularly)]
        save.set_model(model)
        save.on_train_batch_end(0)

    monkeypatch.setattr(weights, "warm_start", load_weights)
    monkeypatch.setitem(training.LOOPS, "fit", loop)
    job = make_job(records, tmp_path, base_model="base", checkpoint_steps=1)
    for _ in range(2):
        training.fit(job, None)
    assert loaded == ["base"]
    buckets = TRANSFORM["ngram_buckets"]
    assert seen == [[0.0] * buckets, [1.0] * buckets]
