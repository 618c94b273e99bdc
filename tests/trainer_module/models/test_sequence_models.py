"""The models of word sequences: their common properties, and those of the CNN-LSTM."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from preprocessing import features
from preprocessing.labels import SENTIMENT, Labels
from preprocessing.settings import Transform
from tests.exhaustive import exhaustive
from trainer_module import models
from trainer_module.loop.trainable import Trainable
from trainer_module.models import cnn_lstm, text_cnn, transformer, wide_and_deep

pytestmark = pytest.mark.slow

FIVE = Labels(tuple("12345"), is_ordered=True)
TRANSFORM = Transform(vocabulary_size=30, max_tokens=12, ngram_buckets=64)
SMALL = {
    # Different widths, because a layer may return those of its input.
    cnn_lstm: {"embedding_width": 16, "filters": 24, "lstm_units": 16},
    text_cnn: {"embedding_width": 16, "filters": 24, "dropout": 0.0},
    transformer: {"width": 16, "layers": 1, "heads": 2, "feed_forward_width": 32, "dropout": 0.0},
    wide_and_deep: {
        "pyramids": 2,
        "embedding_width": 16,
        "filters": 24,
        "word_dropout": 0.0,
        "dropout": 0.0,
    },
}
each_model = pytest.mark.parametrize(
    "module", SMALL, ids=lambda module: module.__name__.rsplit(".")[-1]
)


def build(module, *, labels=SENTIMENT, static_shapes=False, **hyperparameters):
    tf_keras.utils.set_random_seed(1)
    chosen = module.Hyperparameters(**{**SMALL[module], **hyperparameters})
    return module.build(chosen, TRANSFORM, labels, static_shapes=static_shapes)


def compiled(module, *, labels=SENTIMENT, static_shapes=False, **options):
    net = build(module, labels=labels, static_shapes=static_shapes)
    losses = models.loss if labels.is_binary else models.softmax_loss
    model = Trainable(net, losses, models.hits if labels.is_binary else models.softmax_hits)
    model.compile(module.optimizer(0.01), **options)
    return model


def train(model, tokens, labels):
    """Train a step; return the loss."""
    batch = inputs_of(model, tokens), tf.constant(labels)
    return model.train_on_batch(*batch, return_dict=True)["loss"]


def reviews(count, width=TRANSFORM.max_tokens, seed=0):
    """Fillers with one `2 3` (positive) or `3 2` (negative) in them, of 2 to `width` words."""
    random = np.random.default_rng(seed)
    tokens = np.zeros((count, width), np.int64)
    labels = random.integers(0, 2, (count, 1)).astype(np.float32)
    for row, label in zip(tokens, labels[:, 0], strict=True):
        length = random.integers(2, width + 1)
        row[:length] = random.integers(4, 30, length)
        place = random.integers(0, length - 1)
        row[place : place + 2] = (2, 3) if label else (3, 2)
    return tokens, labels


def inputs_of(model, tokens):
    """Return the features that `model` reads: `tokens`, and the words as n-grams."""
    tokens = tf.constant(tokens, tf.int64)
    if features.NGRAMS not in model.input:
        return {features.TOKENS: tokens}
    if isinstance(model.input[features.NGRAMS].type_spec, tf.RaggedTensorSpec):
        return {
            features.TOKENS: tokens,
            features.NGRAMS: tf.RaggedTensor.from_tensor(tokens, padding=0),
        }
    return {features.TOKENS: tokens, features.NGRAMS: tf.where(tokens == 0, -1, tokens)}


def logits(model, tokens):
    return model(inputs_of(model, tokens)).numpy()


@each_model
def test_word_order_is_learned(module):
    model = compiled(module)
    for step in range(100):
        train(model, *reviews(64, seed=step))
    tokens, labels = reviews(500, seed=1000)
    accuracy = ((logits(model, tokens) > 0) == labels).mean()
    assert accuracy > 0.95


@each_model
def test_a_logit_does_not_depend_on_the_width_of_the_batch(module):
    model = build(module)
    for variable in model.trainable_variables:
        # Zeros and ones, as biases and norms start with, would hide much.
        variable.assign_add(tf.random.normal(variable.shape, stddev=0.3, seed=3))
    tokens, _ = reviews(40, width=7)
    tokens[0] = 0
    narrow = logits(model, tokens)
    assert narrow.std() > 0.01
    for more in (1, 2, 5):
        wide = logits(model, np.pad(tokens, [(0, 0), (0, more)]))
        np.testing.assert_allclose(wide, narrow, rtol=1e-4, atol=1e-5)
    alone = logits(model, tokens[3:4, : np.count_nonzero(tokens[3])])
    np.testing.assert_allclose(alone, narrow[3:4], rtol=1e-4, atol=1e-5)


@each_model
def test_batches_without_examples_or_words_change_nothing(module):
    model = compiled(module, labels=FIVE)
    before = [weight.numpy() for weight in model.weights]
    nothing = np.zeros((0, 1), np.int64)
    assert np.isfinite(train(model, nothing, np.zeros((0, 1), np.float32)))
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)
    assert logits(model, nothing).shape == (0, 5)
    assert np.isfinite(logits(model, np.zeros((3, 4)))).all()
    assert np.isfinite(logits(model, np.zeros((3, 0)))).all()


@each_model
def test_logits_are_float32_under_mixed_precision(module):
    tf_keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = build(module, labels=FIVE)
        found = logits(model, reviews(8)[0])
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    assert model.output.dtype == tf.float32
    assert found.shape == (8, 5)
    assert found.dtype == np.float32 and np.isfinite(found).all()


@pytest.mark.parametrize(
    "module", [transformer, *map(exhaustive, (cnn_lstm, text_cnn, wide_and_deep))]
)
def test_xla_compiles_a_train_step_at_static_shapes_and_its_weights_fit_other_shapes(module):
    model, dynamic = compiled(module, static_shapes=True, jit_compile=True), build(module)
    assert model.input[features.TOKENS].shape.as_list() == [None, TRANSFORM.max_tokens]
    batch = reviews(32)
    losses = [train(model, *batch) for _ in range(8)]
    assert losses[-1] < losses[0]
    dynamic.set_weights(model.get_weights())
    tokens = reviews(8)[0]
    np.testing.assert_allclose(logits(model, tokens), logits(dynamic, tokens), rtol=1e-4, atol=1e-5)


@each_model
def test_the_search_space_is_of_hyperparameters(module):
    for name, space in module.SEARCH_SPACE.items():
        if name != "learning_rate":
            for value in space if isinstance(space, list) else space[:2]:
                module.Hyperparameters(**{name: value})


@pytest.mark.parametrize(
    ("module", "dropout"), [(cnn_lstm, "recurrent_dropout"), (wide_and_deep, "word_dropout")]
)
def test_dropout_is_applied_in_training_alone(module, dropout):
    model = build(module, **{dropout: 0.5})
    inputs = inputs_of(model, reviews(8)[0])
    assert (model(inputs).numpy() == model(inputs).numpy()).all()
    one, other = (model(inputs, training=True).numpy() for _ in range(2))
    assert (one[:, -1] != other[:, -1]).any()
    if module is wide_and_deep:
        assert (one[:, 0] == other[:, 0]).all(), "the bag has no dropout"


def test_wide_and_deep_is_the_mean_of_parts_that_each_learn_by_their_own_loss():
    model = build(wide_and_deep)
    tokens, labels = reviews(16)

    def gradient_of_the_bag(others):
        for layer in model.layers:
            if layer.name.startswith("logit"):
                layer.bias.assign([others])
        with tf.GradientTape() as tape:
            answer = model(inputs_of(model, tokens), training=True)
            assert answer.shape == (16, 3, 1)
            loss = tf.reduce_mean(models.loss(labels, answer))
        return tape.gradient(loss, model.get_layer("bag").table).numpy()

    parts = model(inputs_of(model, tokens), training=True).numpy()
    mean = parts.mean(axis=1)
    np.testing.assert_allclose(logits(model, tokens), mean, rtol=1e-5, atol=1e-6)
    uncertain = gradient_of_the_bag(0.0)
    assert np.abs(uncertain).max() > 0.001
    np.testing.assert_array_equal(gradient_of_the_bag(50.0), uncertain)


def test_the_mean_over_parts_is_that_of_each_class():
    parts = [tf.constant([[1.0, 2.0, 3.0]]), tf.constant([[5.0, 0.0, -3.0]])]
    layer = wide_and_deep.MeanOfParts()
    assert layer(parts).numpy().tolist() == [[3.0, 1.0, 0.0]]
    assert layer(parts, training=True).numpy().tolist() == [[[1.0, 2.0, 3.0], [5.0, 0.0, -3.0]]]


def test_wrong_hyperparameters_are_refused():
    with pytest.raises(ValueError, match="width: 16 is not a multiple of the 3 heads"):
        transformer.Hyperparameters(width=16, heads=3)
    for wrong in ("3,", "3, 4", "0"):
        with pytest.raises(ValueError, match="kernel_sizes"):
            text_cnn.Hyperparameters(kernel_sizes=wrong)
    assert text_cnn.Hyperparameters(kernel_sizes="2,15").sizes == [2, 15]
