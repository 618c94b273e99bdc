"""A copy of the sources that a test may change."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]

SLOW_SECONDS = 0.1
_SLOW_MODEL = f'''\
"""ngram_linear, made slow: a call takes {SLOW_SECONDS} s, except in the training."""

import tensorflow as tf
import tf_keras

from trainer_module.models import ngram_linear
from trainer_module.models.ngram_linear import *
from trainer_module.models.ngram_linear import Hyperparameters, adapt, optimizer


class Wait(tf_keras.layers.Layer):
    def call(self, inputs, training=None):
        if training:
            return inputs
        end = tf.timestamp() + {SLOW_SECONDS}
        waited = tf.while_loop(lambda n: tf.timestamp() < end, lambda n: [n + 1], [0])
        with tf.control_dependencies(waited):
            return tf.identity(inputs)


def build(hyperparameters, transform, *, static_shapes=False):
    model = ngram_linear.build(hyperparameters, transform, static_shapes=static_shapes)
    return tf_keras.Model(model.input, Wait()(model.output), name="slow")
'''


def copy_of_the_checkout(folder: Path) -> Path:
    """Copy the files that git knows or would add to `folder`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, folder / name)
    return folder


def checkout_with_a_slow_model(folder: Path) -> Path:
    """Copy the checkout and add the model `slow`."""
    copy_of_the_checkout(folder)
    (folder / "trainer_module/models/slow.py").write_text(_SLOW_MODEL, encoding="utf-8")
    settings = folder / "trainer_module/settings.py"
    text = settings.read_text(encoding="utf-8")
    known = '        "transformer",\n'
    assert text.count(known) == 1
    settings.write_text(text.replace(known, f'{known}        "slow",\n'), encoding="utf-8")
    return folder
