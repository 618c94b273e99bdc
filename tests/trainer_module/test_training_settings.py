"""Every setting of `training`: its effect on a training.

Most tests check the arguments of the training loop; the others run a short training.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests import examples
from tests.trainer_module.conftest import make_job
from trainer_module import training
from trainer_module.loop import checkpoints
from trainer_module.loop.loops import LOOPS
from trainer_module.models import text_cnn
from trainer_module.settings import Training

STEPS = 4
"""Steps of an epoch: 64 Examples in batches of 16."""

TESTED_ELSEWHERE = {
    "devices": "trainer_module/test_strategies.py",
    "workers": "trainer_module/cluster/test_local.py",
    "parameter_servers": "trainer_module/cluster/test_local.py",
    "tpu": "trainer_module/cluster/test_resources.py",
    "warm_start": "pipeline/test_nodes.py",
    "tuner_trials": "trainer_module/test_tuner.py",
    "early_stopping": "trainer_module/loop/test_resume.py",
    "profile_steps": "trainer_module/test_combinations.py",
}


@pytest.fixture
def fit(records, tmp_path, monkeypatch):
    """Return a function: settings -> the result of a training with a folder of its own."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    places = map(str, range(100))

    def fit(folder=records, **settings):
        return training.fit(make_job(folder, tmp_path / next(places), **settings), None)

    yield fit
    tf_keras.mixed_precision.set_global_policy("float32")


@pytest.fixture
def given(fit, monkeypatch):
    """Return a function: settings -> the arguments of the loop, which does not train."""
    calls = []
    for loop in LOOPS:
        monkeypatch.setitem(LOOPS, loop, lambda *args, loop=loop: calls.append((loop, *args)))

    def given(*folder, **settings):
        fit(*folder, **settings)
        loop, model, plan, _ = calls.pop()
        return SimpleNamespace(loop=loop, model=model, plan=plan)

    return given


def first_batch(given):
    return next(iter(given.plan.inputs.train_dataset(0)))


def order(given, feature="ngrams"):
    """Return the numbers of the Examples of an epoch; the first id of an Example is its number."""
    data = iter(given.plan.inputs.train_dataset(0))
    batches = [next(data)[0][feature] for _ in range(given.plan.inputs.steps)]
    dense = [ids.to_tensor() if isinstance(ids, tf.RaggedTensor) else ids for ids in batches]
    return [number for ids in dense for number in ids[:, 0].numpy().tolist()]


def rate(given, step=0):
    return pytest.approx(float(given.model.optimizer.learning_rate(step)))


def last_rate(given):
    """Return the learning rate at the end of the cosine."""
    return rate(given, given.plan.training.epochs * STEPS)


def strategy(given):
    return type(given.model.distribute_strategy).__name__


def embedding(given):
    return given.model.get_layer("embedding")


WORDS = {"model": "text_cnn"}
# For batches of 16, an eighth of it.
COSINE = {"learning_rate": 3.2, "warmup": 0.0}
FLAT = {**COSINE, "schedule": "constant"}
CASES = [
    # the setting, further settings, the function that returns a result, the expected result
    ({"model": "text_cnn"}, {}, lambda given: given.model.name, "text_cnn"),
    (
        {"hyperparameters": {"embedding_width": 4}},
        WORDS,
        lambda given: embedding(given).output_dim,
        4,
    ),
    ({"strategy": "mirrored"}, {}, strategy, "MirroredStrategy"),
    ({"strategy": "central_storage"}, {}, strategy, "CentralStorageStrategy"),
    ({"loop": "custom"}, {}, lambda given: given.loop, "custom"),
    (
        # In the middle of all steps the cosine has fallen by half.
        {"epochs": 5},
        COSINE,
        lambda given: (given.plan.training.epochs, rate(given, 5 * STEPS // 2), last_rate(given)),
        (5, 0.26, 0.12),
    ),
    (
        {"batch_size_per_replica": 8},
        {},
        lambda given: (
            first_batch(given)[1].shape[0],
            given.plan.inputs.steps,
            given.plan.inputs.eval_steps,
        ),
        (8, 8, 3),
    ),
    ({"learning_rate": 0.8}, {"schedule": "constant", "warmup": 0.0}, rate, 0.1),
    (
        {"learning_rate": None},
        {"schedule": "constant", "warmup": 0.0, **WORDS},
        rate,
        text_cnn.LEARNING_RATE / 8,
    ),
    ({"learning_rate_scaling": "linear"}, FLAT, rate, 0.05),
    ({"learning_rate_scaling": "none"}, FLAT, rate, 3.2),
    ({"schedule": "constant"}, COSINE, last_rate, 0.4),
    ({"warmup": 0.5}, {"learning_rate": 4.8}, rate, 0.1),
    (
        {"mixed_precision": "bfloat16"},
        WORDS,
        lambda given: (embedding(given).compute_dtype, given.model.output.dtype.name),
        ("bfloat16", "float32"),
    ),
    (
        # Batches of one shape come with the weight of each Example.
        {"jit_compile": True},
        {},
        lambda given: (given.model.jit_compile, len(first_batch(given))),
        (True, 3),
    ),
    ({"steps_per_execution": 3}, {}, lambda given: given.plan.training.steps_per_execution, 3),
]


def test_every_setting_is_tested():
    tests = Path(__file__).parents[1]
    here = {name for setting, *_ in CASES for name in setting}
    here |= {
        name
        for name in Training.model_fields
        for test in globals()
        if test.startswith(f"test_{name}_")
    }
    assert here.isdisjoint(TESTED_ELSEWHERE)
    assert here | TESTED_ELSEWHERE.keys() == Training.model_fields.keys()
    for name, file in TESTED_ELSEWHERE.items():
        assert name in (tests / file).read_text()


@pytest.mark.parametrize(("setting", "others", "look", "expected"), CASES)
def test_every_setting_has_its_effect(given, setting, others, look, expected):
    assert look(given(**others, **setting)) == expected


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


def test_class_weights_of_a_class_without_reviews_are_refused(given, skewed):
    (skewed / "train-0.gz").unlink()
    with pytest.raises(ValueError, match="balanced, but the train split has no negative reviews"):
        given(skewed, class_weights="balanced")


def test_hyperparameters_are_those_of_the_exported_model_too(records, tmp_path):
    job = make_job(records, tmp_path, **WORDS, hyperparameters={"embedding_width": 4})
    exported = SimpleNamespace(model=training._plain_model(job))
    assert embedding(exported).output_dim == 4


def test_shuffle_buffer_determines_how_many_examples_are_mixed(given):
    numbers = list(range(STEPS * 16))
    # Of one file, and less than the 16 Examples that stay together.
    assert order(given(shuffle_buffer=1)) == numbers
    mixed = order(given(shuffle_buffer=64))
    assert mixed != numbers
    assert sorted(mixed) == numbers


def test_seed_determines_the_order_and_the_first_weights(given):
    one, same, other = (given(seed=seed, model="text_cnn") for seed in (1, 1, 3))
    orders = [order(each, "tokens") for each in (one, same, other)]
    assert orders[0] == orders[1] != orders[2]
    weights = [embedding(each).get_weights()[0] for each in (one, same, other)]
    assert (weights[0] == weights[1]).all()
    assert (weights[0] != weights[2]).any()


def test_cache_input_reads_the_files_once(given, records, tmp_path):
    for name in ("train-0.gz", "eval-0.gz"):
        (tmp_path / name).write_bytes((records / name).read_bytes())
    plan = given(tmp_path, cache_input=True, shuffle_buffer=1).plan
    data = iter(plan.inputs.train_dataset(0))
    first = [next(data)[0]["ngrams"].to_list() for _ in range(STEPS)]
    # The file is replaced by the same number of other Examples.
    [other] = tf.data.TFRecordDataset(str(records / "eval-0.gz"), "GZIP").take(1)
    examples.write(tmp_path / "train-0.gz", [other.numpy()] * (STEPS * 16))
    later = [next(data)[0]["ngrams"].to_list() for _ in range(10 * STEPS)]
    assert later == 10 * first


@pytest.mark.slow
def test_checkpoint_steps_is_how_often_a_checkpoint_is_written(fit, monkeypatch):
    steps = []
    original = checkpoints.Checkpoints.save

    def save(self, steps_done):
        steps.append(steps_done)
        original(self, steps_done)

    monkeypatch.setattr(checkpoints.Checkpoints, "save", save)
    fit(checkpoint_steps=3, epochs=2)
    # After each epoch of four steps, too.
    assert steps == [3, 4, 7, 8]
