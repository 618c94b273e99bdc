"""Training: strategy, compile, fit, export."""

from __future__ import annotations

import math
import os

import tensorflow as tf
import tf_keras
from absl import logging

from preprocessing.progress import report
from trainer_module import dataset, export, models, strategies
from trainer_module.settings import TrainingJob

_FINAL_RATE = 0.3
"""Of the learning rate, at the last step."""
_ADAPT_BATCH = 8192


class StepProgress(tf_keras.callbacks.Callback):
    """Reports the steps done over all epochs, ten times an epoch or more often."""

    def __init__(self, steps_per_epoch: int, epochs: int):
        super().__init__()
        self._total = steps_per_epoch * epochs
        self._every = max(1, steps_per_epoch // 20)
        self._done = 0

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        self._done += 1
        if self._done % self._every == 0 or self._done == self._total:
            report("steps", self._done, self._total)


def _spare_autograph(model: tf_keras.Model) -> None:
    """Keeps AutoGraph from rewriting Keras itself, which has nothing for it to rewrite.

    TensorFlow knows to leave its own `keras` alone, but not the package `tf_keras`: without this
    the first step of any training takes ten seconds longer.
    """
    model.train_step = tf.autograph.experimental.do_not_convert(model.train_step)
    model.test_step = tf.autograph.experimental.do_not_convert(model.test_step)


def train(job: TrainingJob) -> None:
    """Trains the model of `job` under its strategy and writes the SavedModel.

    Raises:
      ValueError: the strategy cannot be had on this machine, or there is nothing to train on.
    """
    training = job.training
    strategy = strategies.make_strategy(training["strategy"], training["devices"])
    tf_keras.utils.set_random_seed(training["seed"])
    model_module = models.load(training["model"])

    batch_size = training["batch_size_per_replica"] * strategy.num_replicas_in_sync
    examples = dataset.count_examples(job.train_files)
    if not examples:
        raise ValueError(f"no training example in {job.train_files}")
    steps = math.ceil(examples / batch_size)
    logging.info(
        "%d examples, %d replicas x %d, %d steps an epoch",
        examples,
        strategy.num_replicas_in_sync,
        training["batch_size_per_replica"],
        steps,
    )
    spec = dataset.feature_spec(model_module.FEATURES, job.transform)
    train_data = dataset.make_dataset(
        job.train_files,
        spec,
        batch_size,
        shuffle_buffer=training["shuffle_buffer"],
        seed=training["seed"],
    )
    eval_data = dataset.make_dataset(job.eval_files, spec, batch_size)

    with strategy.scope():
        model = model_module.build(training, job.transform)
        schedule = tf_keras.optimizers.schedules.PolynomialDecay(
            training["learning_rate"],
            steps * training["epochs"],
            end_learning_rate=training["learning_rate"] * _FINAL_RATE,
        )
        model.compile(
            optimizer=model_module.optimizer(schedule, batch_size),
            loss=tf_keras.losses.BinaryCrossentropy(from_logits=True),
            metrics=[tf_keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)],
        )
    _spare_autograph(model)
    model_module.adapt(model, dataset.make_dataset(job.train_files, spec, _ADAPT_BATCH))
    model.fit(
        train_data,
        validation_data=eval_data,
        epochs=training["epochs"],
        verbose=2,
        callbacks=[
            StepProgress(steps, training["epochs"]),
            tf_keras.callbacks.TensorBoard(
                os.path.join(job.model_run_dir, "logs"), write_graph=False, update_freq="epoch"
            ),
        ],
    )
    export.save(model, job.transform_graph, job.serving_model_dir)
    logging.info("Model written to %s with TensorFlow %s", job.serving_model_dir, tf.__version__)
