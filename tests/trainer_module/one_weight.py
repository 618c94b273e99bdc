"""A model with a single weight, for tests of callbacks and checkpoints."""

import tensorflow as tf
import tf_keras


def make_model(value=0.0):
    """Return a model with a single weight, and with an optimizer that has a state."""
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, use_bias=False)])
    model.build([None, 1])
    model.compile(tf_keras.optimizers.legacy.Adagrad(0.1), "mse")
    set_weight(model, value)
    return model


def take_step(model):
    """Train without Keras's own step, whose conversion by AutoGraph takes seconds."""
    kernel = model.layers[0].kernel
    model.optimizer.apply_gradients([(tf.ones_like(kernel), kernel)])


def set_weight(model, value):
    model.layers[0].kernel.assign([[value]])


def weight(model):
    return float(model.get_weights()[0][0, 0])
