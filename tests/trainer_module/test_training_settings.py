"""Settings of `training`: their effect on the arguments of the training loop."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.trainer_module.conftest import make_job
from trainer_module import training
from trainer_module.loop.loops import LOOPS
from trainer_module.models import text_cnn

WORDS = {"model": "text_cnn"}


@pytest.fixture
def fit(records, tmp_path, monkeypatch):
    """Return a function: settings -> the result of a training with a folder of its own."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    places = map(str, range(100))

    def fit(folder=records, **settings):
        return training.train_model(make_job(folder, tmp_path / next(places), **settings), None)

    yield fit
    assert tf_keras.mixed_precision.global_policy().name == "float32"


@pytest.fixture
def given(fit, monkeypatch):
    """Return a function: settings -> the arguments of the loop, which does not train."""
    calls = []

    def loop(model, plan, callbacks):
        calls.append(SimpleNamespace(model=model, plan=plan))
        metrics = ("loss", "accuracy", "val_loss", "val_accuracy")
        plan.state.history.append(dict.fromkeys(metrics, 0.5))

    monkeypatch.setitem(LOOPS, "fit", loop)

    def given(*folder, **settings):
        fit(*folder, **settings)
        return calls.pop()

    return given


def order(given, feature="ngrams"):
    """Return the numbers of the Examples of an epoch; the first id of an Example is its number."""
    data = iter(given.plan.inputs.train_dataset(0))
    batches = [next(data)[0][feature] for _ in range(given.plan.inputs.steps)]
    dense = [ids.to_tensor() if isinstance(ids, tf.RaggedTensor) else ids for ids in batches]
    return [number for ids in dense for number in ids[:, 0].numpy().tolist()]


def embedding(given):
    return given.model.get_layer("embedding")


def test_the_batch_size_determines_the_steps_and_the_learning_rate_falls_over_all_of_them(given):
    made = given(batch_size_per_replica=8, epochs=5, learning_rate=3.2, warmup=0.0)
    assert next(iter(made.plan.inputs.train_dataset(0)))[1].shape[0] == 8
    assert (made.plan.inputs.steps, made.plan.inputs.eval_steps) == (8, 3)
    rates = [float(made.model.optimizer.learning_rate(step)) for step in (0, 40)]
    peak = 3.2 * (8 / 1024) ** 0.5
    assert rates == pytest.approx([peak, 0.3 * peak])


def test_a_small_train_split_gets_more_epochs(given):
    """The train split has 64 Examples."""
    for minimum, epochs in ((None, 2), (128, 2), (129, 3), (640, 10)):
        made = given(batch_size_per_replica=8, epochs=2, min_examples_seen=minimum)
        assert made.plan.inputs.epochs == epochs
        assert made.plan.rounds() == [(0, epochs, 8)]
    # The learning rate falls over all of these steps.
    rate = made.model.optimizer.learning_rate
    assert float(rate(79)) < float(rate(40)) < float(rate(8))


def test_a_model_has_its_own_learning_rate_hyperparameters_and_precision(given):
    made = given(
        **WORDS,
        hyperparameters={"embedding_width": 4},
        mixed_precision="bfloat16",
        learning_rate=None,
        learning_rate_scaling="none",
        warmup=0.0,
    )
    assert float(made.model.optimizer.learning_rate(0)) == pytest.approx(text_cnn.LEARNING_RATE)
    assert (embedding(made).output_dim, embedding(made).compute_dtype) == (4, "bfloat16")
    assert made.model.output.dtype == tf.float32


@pytest.mark.slow
def test_class_weights_give_both_classes_the_same_weight(given, skewed):
    label = np.float32([[0], [1]])
    losses = {
        kind: given(skewed, class_weights=kind).model.loss_of_examples(label, 0 * label).numpy()
        for kind in ("none", "balanced")
    }
    assert losses["none"] == pytest.approx([np.log(2)] * 2)
    # 60 of 150 Examples are negative.
    assert losses["balanced"] == pytest.approx([np.log(2) * 150 / 120, np.log(2) * 150 / 180])


def test_the_module_of_a_model_may_have_a_loss_of_its_own(given, monkeypatch):
    monkeypatch.setattr(text_cnn, "loss", lambda label, logit: 3 * label[:, 0], raising=False)
    label = np.float32([[0], [1]])
    assert given(**WORDS).model.loss_of_examples(label, label).tolist() == [0, 3]


@pytest.mark.slow
def test_class_weights_of_a_class_without_reviews_are_refused(given, skewed):
    (skewed / "train-0.gz").unlink()
    line = "balanced, but the train split has no Example of the class negative"
    with pytest.raises(ValueError, match=line):
        given(skewed, class_weights="balanced")


def test_shuffle_buffer_determines_how_many_examples_are_mixed(given):
    numbers = list(range(64))
    # Of one file, and with a buffer for a single block.
    assert order(given(shuffle_buffer=1)) == numbers
    mixed = order(given(shuffle_buffer=64))
    assert mixed != numbers
    assert sorted(mixed) == numbers
    # TensorFlow allocates the whole buffer: a large one would take all memory.
    assert order(given(shuffle_buffer=10**15)) == mixed


@pytest.mark.slow
@pytest.mark.both_stacks
def test_seed_determines_the_order_and_the_first_weights(given):
    one, same, other = (given(seed=seed, model="text_cnn") for seed in (1, 1, 3))
    orders = [order(each, "tokens") for each in (one, same, other)]
    assert orders[0] == orders[1] != orders[2]
    weights = [embedding(each).get_weights()[0] for each in (one, same, other)]
    assert (weights[0] == weights[1]).all()
    assert (weights[0] != weights[2]).any()
