"""A model of one weight, for tests of what happens around a training."""

import tensorflow as tf
import tf_keras


def make_model(value=0.0):
    """One weight, and an optimizer that remembers something of it."""
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, use_bias=False)])
    model.build([None, 1])
    model.compile(tf_keras.optimizers.legacy.Adagrad(0.1), "mse")
    set_weight(model, value)
    return model


def take_step(model):
    """Without Keras's own step, which takes AutoGraph seconds."""
    kernel = model.layers[0].kernel
    model.optimizer.apply_gradients([(tf.ones_like(kernel), kernel)])


def set_weight(model, value):
    model.layers[0].kernel.assign([[value]])


def weight(model):
    return float(model.get_weights()[0][0, 0])
