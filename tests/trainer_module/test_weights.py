"""Weights: copies to and from a model that is sharded over servers, and the warm start."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from core.errors import InputError
from examples.split_fractions import SplitFractions
from preprocessing import features
from preprocessing.labels import SENTIMENT, Labels, write_labels
from preprocessing.settings import Transform
from tests.trainer_module.conftest import TOPIC_TEXTS, TRANSFORM, make_job, predict
from trainer_module import task, training, weights
from trainer_module.loop.callbacks import SaveRegularly

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


def test_weights_that_are_not_finite_are_not_used(records, tmp_path, monkeypatch):
    job = make_job(records, tmp_path, base_model=str(tmp_path / "model"))
    weights.write_origin(job, NGRAMS)
    base = SimpleNamespace(model_variables=model([1.0, np.nan]).variables)
    monkeypatch.setattr(tf.saved_model, "load", lambda folder: base)
    plain, spread = model([3.0, 4.0]), model([3.0], [4.0])
    found = weights.warm_start(job, NGRAMS, plain, spread)
    assert found == f"the weights v0:0 of {job.base_model} are not finite"
    assert values(plain) + values(spread) == [[3.0, 4.0], [3.0], [4.0]]
    base.model_variables[0].assign([5.0, 6.0])
    assert not weights.warm_start(job, NGRAMS, plain, spread)
    assert values(spread) == [[5.0], [6.0]]


def test_weights_of_a_model_whose_code_has_changed_its_shapes_are_not_used(
    records, tmp_path, monkeypatch
):
    job = make_job(records, tmp_path, base_model=str(tmp_path / "model"))
    weights.write_origin(job, NGRAMS)
    base = SimpleNamespace(model_variables=model([1.0, 2.0]).variables)
    monkeypatch.setattr(tf.saved_model, "load", lambda folder: base)
    for changed in (model([3.0, 4.0, 5.0]), model([3.0, 4.0], [5.0])):
        before = values(changed)
        found = weights.warm_start(job, NGRAMS, changed, changed)
        assert found.startswith(f"the weights of {job.base_model} have the shapes [(2,)], now [(")
        assert values(changed) == before


def test_weights_of_another_model_are_not_used_and_the_difference_is_named(records, tmp_path):
    """A training on the weights of the same model is in `test_training.py`."""
    job = make_job(records, tmp_path, base_model=str(tmp_path / "model"))

    def differences(**settings):
        other = make_job(records, tmp_path, base_model=job.base_model, **settings)
        return weights.warm_start(other, NGRAMS, model(1.0), model(1.0))

    assert differences().startswith("model (None, now ngram_linear) differs between this training")
    weights.write_origin(job, NGRAMS)
    assert differences(model="text_cnn").startswith("model (ngram_linear, now text_cnn) differs")
    text = differences(hyperparameters={"scale_floor": 0.5})
    assert text.startswith("hyperparameters.scale_floor (0.3, now 0.5) differs between")
    text = differences(hyperparameters={"scale_floor": 0.5, "length_power": 0.2})
    assert text.startswith(
        "hyperparameters.length_power (0.5, now 0.2), hyperparameters.scale_floor (0.3, now 0.5) "
        "differ between this training"
    )


def test_weights_that_may_have_seen_the_test_split_are_not_used(records, tmp_path, monkeypatch):
    """The base model of a backfill is of later spans, and was trained on the test split."""
    base = SimpleNamespace(model_variables=model([5.0]).variables)
    monkeypatch.setattr(tf.saved_model, "load", lambda folder: base)
    job = make_job(records, tmp_path, base_model=str(tmp_path / "model"))

    def found(theirs, ours):
        weights.write_origin(job.model_copy(update=theirs), NGRAMS)
        of_run = job.model_copy(update=ours)
        return weights.warm_start(of_run, NGRAMS, model([1.0]), model([1.0]))

    def of(span=None, **splits):
        return {"unseen_span": span, "splits": splits}

    def of_sizes(held_out_by_files=(), **fractions):
        named = dict.fromkeys(held_out_by_files, "*")
        return of(**named) | {"split_fractions": SplitFractions(**fractions)}

    named = of(train="train", test="test")
    for theirs, ours, difference in (
        (of(8), of(7), "is of later spans"),
        # The next step after the first runs on all files is a run every day.
        (of(), of(7), "was trained without spans"),
        (of(7), of(), "was trained with spans"),
        (of(), named, "was trained with other data.splits"),
        (named, of(), "was trained with other data.splits"),
        (of(), of_sizes(test=0.3), "was trained with other data.split_fractions"),
        # A large eval split moves the test split.
        (of_sizes(eval=0.05), of_sizes(eval=0.2), "was trained with other data.split_fractions"),
        # The eval split has files of its own, so the other model was trained on all other texts.
        (
            of_sizes(["train", "eval"], eval=0.4),
            of_sizes(["train", "eval"]),
            "was trained with other data.split_fractions",
        ),
    ):
        assert found(theirs, ours) == (
            f"{job.base_model} {difference}, and may have been trained on the test split"
        )
    unknown = {"unseen_span": None, "splits": None}
    for theirs, ours in (
        (of(7), of(7)),
        (of(6), of(7)),
        (of(), of_sizes(eval=0.05)),
        (of_sizes(eval=0.05), of_sizes(eval=0.1)),
        (of_sizes(test=0.3), of_sizes(test=0.1)),
        (of_sizes(["train", "test"]), of_sizes(["train", "test"], eval=0.3)),
        (of(), of()),
        (named, named),
        (unknown, named),
    ):
        assert not found(theirs, ours)


def test_a_default_that_is_set_is_no_difference_and_old_models_have_only_what_was_set(
    records, tmp_path, monkeypatch
):
    base = SimpleNamespace(model_variables=model([5.0]).variables)
    monkeypatch.setattr(tf.saved_model, "load", lambda folder: base)
    job = make_job(records, tmp_path, base_model=str(tmp_path / "model"))
    chosen = make_job(
        records, tmp_path, base_model=job.base_model, hyperparameters={"scale_floor": 0.3}
    )
    weights.write_origin(job, NGRAMS)
    file = Path(job.base_model) / weights.ORIGIN_FILE
    older = json.loads(file.read_text()) | {"hyperparameters": {}}
    for stored in (file.read_text(), json.dumps(older)):
        file.write_text(stored)
        assert not weights.warm_start(chosen, NGRAMS, model([1.0]), model([1.0]))


@pytest.mark.slow
def test_weights_depend_on_the_settings_of_the_features_and_on_the_vocabulary(prepared, tmp_path):
    job = make_job(prepared, tmp_path)

    def is_same(names, **transform):
        changed = job.model_copy(update={"transform": Transform(**{**TRANSFORM, **transform})})
        return weights.origin(job, names) == weights.origin(changed, names)

    assert not is_same(NGRAMS, openings=[2, 4])
    assert not is_same(NGRAMS, character_ngrams=[3, 4])
    assert is_same(NGRAMS, max_tokens=9)
    assert is_same(TOKENS, openings=[2, 4])
    assert not is_same(TOKENS, max_tokens=9)
    assert not is_same(TOKENS, vocabulary_size=99)
    # Neither do the settings of a training matter.
    assert weights.origin(job, NGRAMS) == weights.origin(
        make_job(prepared, tmp_path, learning_rate=0.1, epochs=9), NGRAMS
    )
    graph = tmp_path / "graph"
    shutil.copytree(prepared / "graph", graph)
    words = graph / "transform_fn" / "assets" / features.VOCABULARY
    words.write_text("".join(sorted(words.read_text().splitlines(keepends=True))))
    other = job.model_copy(update={"transform_graph": str(graph)})
    assert weights.origin(job, TOKENS) != weights.origin(other, TOKENS)
    assert weights.origin(job, NGRAMS) == weights.origin(other, NGRAMS)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            ("a", "b", "c"),
            "only the model has negative, positive; only the train split has a, b, c",
        ),
        (("negative", "neutral", "positive"), "only the train split has neutral"),
        (("positive", "negative"), "the order of the model is negative, positive"),
        (
            tuple(f"class\n{n}" for n in range(1_000)),
            "only the model has negative, positive; only the train split has class\\n0, class\\n1, "
            "class\\n2, class\\n3, class\\n4 and 995 more",
        ),
    ],
)
def test_a_base_model_of_other_classes_is_refused(records, tmp_path, names, problem):
    job = make_job(records, tmp_path, base_model=str(tmp_path / "model"))
    (tmp_path / "model" / "assets").mkdir(parents=True)
    write_labels(f"{job.base_model}/assets", SENTIMENT)
    # An order changes nothing.
    weights.check_base_classes(job, Labels(SENTIMENT.names, is_ordered=True))
    with pytest.raises(InputError) as raised:
        weights.check_base_classes(job, Labels(names))
    assert str(raised.value) == (
        f"training.warm_start: the classes of {job.base_model} differ from those of the train "
        f"split ({problem}). Set training.warm_start=false, or data.labels to the classes of the "
        "model"
    )


@pytest.mark.slow
def test_a_warm_start_from_other_classes_ends_before_the_training_with_exit_code_2(
    records, topics, tmp_path, monkeypatch, capfd
):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    job = make_job(records, tmp_path, base_model=str(topics / "model"))
    file = tmp_path / "job.json"
    file.write_text(job.model_dump_json())
    monkeypatch.setattr(training, "build_model", None)  # it must not be called
    assert task.main([str(file)]) == 2
    assert "training.warm_start: the classes of " in capfd.readouterr().err
    assert not (tmp_path / "model").exists()


def test_with_spans_a_base_model_of_other_classes_is_a_reason_for_new_weights(
    records, tmp_path, monkeypatch
):
    monkeypatch.delenv("TF_CONFIG", raising=False)

    def loop(model, plan, callbacks):
        plan.state.history.append({"loss": 0.5})

    monkeypatch.setitem(training.LOOPS, "fit", loop)
    monkeypatch.setattr(weights, "warm_start", None)  # it must not be called
    monkeypatch.setattr(training, "summarize", lambda setup, model, state, **_: state)
    written = []
    monkeypatch.setattr(training, "write_summary", lambda folder, state: written.append(state))
    job = make_job(records, tmp_path, base_model=str(tmp_path / "base"))
    (tmp_path / "base" / "assets").mkdir(parents=True)
    write_labels(f"{job.base_model}/assets", Labels(("negative", "neutral", "positive")))
    training.train_model(job.model_copy(update={"has_spans": True}), None)
    assert [state.skipped_warm_start for state in written] == [
        f"the classes of {job.base_model} differ from those of the train split "
        "(only the model has neutral)"
    ]


@pytest.mark.slow
def test_a_warm_start_from_the_same_classes_continues(topics, tmp_path):
    job = make_job(topics, tmp_path, base_model=str(topics / "model"), epochs=1, learning_rate=1e-9)
    training.train(job, None)
    one, two = (predict(folder, TOPIC_TEXTS)["probabilities"] for folder in (topics, tmp_path))
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_a_resumed_training_keeps_its_own_weights(records, tmp_path, monkeypatch):
    """The weights of the base model are only those that it began with."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    loaded, seen = [], []

    def load_weights(job, names, plain, model):
        loaded.append(job.base_model)
        return ""

    def loop(model, plan, callbacks):
        """One step, after which a checkpoint is written."""
        metrics = ("loss", "accuracy", "val_loss", "val_accuracy")
        plan.state.history.append(dict.fromkeys(metrics, 0.5))
        seen.append(model.trainable_variables[0].numpy().tolist())
        model.trainable_variables[0].assign_add(tf.ones_like(model.trainable_variables[0]))
        [save] = [callback for callback in callbacks if isinstance(callback, SaveRegularly)]
        save.set_model(model)
        save.on_train_batch_end(0)

    monkeypatch.setattr(weights, "warm_start", load_weights)
    monkeypatch.setitem(training.LOOPS, "fit", loop)
    job = make_job(records, tmp_path, base_model="base", checkpoint_steps=1)
    for _ in range(2):
        training.train_model(job, None)
    assert loaded == ["base"]
    buckets = TRANSFORM["ngram_buckets"]
    assert seen == [[0.0] * buckets, [1.0] * buckets]
