"""The resolved settings of a training in this process: cluster, model, strategy, inputs."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
from absl import logging

from examples.counts import LABELS
from preprocessing.labels import read_labels
from trainer_module import models
from trainer_module.cluster.collective import Collective
from trainer_module.cluster.tf_config import Cluster
from trainer_module.inputs.dataset import Inputs
from trainer_module.loop.learning_rate import WarmUp, make_schedule
from trainer_module.loop.trainable import Trainable
from trainer_module.settings import TrainingJob
from trainer_module.weights import check_base_classes


@dataclass(frozen=True)
class Setup:
    """A job with its settings resolved for this process.

    Attributes:
      job: the job.
      cluster: the cluster of this process; None: it trains alone.
      architecture: the model of `training.model` with its hyperparameters.
      strategy: the strategy of `training.strategy`.
      collective: sums over the processes that train synchronously.
      inputs: the train and the eval split, for the strategy.
      learning_rate: the learning rate over the steps.
    """

    job: TrainingJob
    cluster: Cluster | None
    architecture: models.Architecture
    strategy: tf.distribute.Strategy
    collective: Collective
    inputs: Inputs
    learning_rate: WarmUp

    @property
    def chief(self) -> bool:
        """Whether this process writes the model, the logs and the summary."""
        return self.cluster is None or self.cluster.chief


def resolve(job: TrainingJob, cluster: Cluster | None, strategy: tf.distribute.Strategy) -> Setup:
    """Resolve the settings of a job; under a synchronous strategy every process calls this.

    Args:
      job: the job.
      cluster: the cluster of this process; None: it trains alone.
      strategy: the strategy of `training.strategy`.

    Raises:
      ValueError: the model does not allow a hyperparameter, or a split has no Example.
      InputError: a file of Examples or of the classes is damaged or missing, or the base model of a
        warm start has other classes and the input has no spans.
      OSError: a file of the classes cannot be read.
      tensorflow.errors.OpError: a file cannot be read, or another process of the cluster is gone.
    """
    training = job.training
    labels = read_labels(job.transform_graph)
    check_base_classes(job, labels)
    architecture = models.resolve(training, labels, job.model_file)
    collective = Collective(strategy, cluster)
    inputs = Inputs(job, architecture.features, strategy, collective)
    steps = inputs.steps * inputs.epochs
    rate = make_schedule(training, architecture.learning_rate, inputs.global_batch, steps)
    return Setup(job, cluster, architecture, strategy, collective, inputs, rate)


def build_model(setup: Setup) -> Trainable:
    """Build and compile the model under its strategy.

    Args:
      setup: the resolved training. Under a synchronous strategy every process calls this.

    Raises:
      ValueError: `training.class_weights: balanced` requires Examples of a class that the train
        split lacks.
      InputError: a file of Examples is damaged, or a label is the index of no class.
      tensorflow.errors.OpError: a file cannot be read, or another process of the cluster is gone.
    """
    training, strategy, inputs = setup.job.training, setup.strategy, setup.inputs
    reduced = training.mixed_precision
    policy = "float32" if reduced == "none" else f"mixed_{reduced}"
    loss = _loss(setup)
    with models.precision(policy), strategy.scope():
        net = setup.architecture.build(
            setup.job.transform, setup.architecture.labels, static_shapes=inputs.static_shapes
        )
        model = Trainable(net, loss, setup.architecture.hits, training.seed)
        model.compile(
            optimizer=setup.architecture.optimizer(setup.learning_rate),
            # A TPU compiles every step by itself.
            jit_compile=training.jit_compile
            and not isinstance(strategy, tf.distribute.TPUStrategy),
            steps_per_execution=training.steps_per_execution,
        )
    logging.info(
        "%s: %d train and %d eval Examples, %d x %d a step, %d steps an epoch, learning rate %.4g",
        training.model,
        inputs.train.examples,
        inputs.evaluation.examples,
        strategy.num_replicas_in_sync,
        inputs.batch_size,
        inputs.steps,
        setup.learning_rate.peak,
    )
    return model


def _loss(setup: Setup) -> models.Loss:
    """Return the loss of each Example, with `class_weights` multiplied by the weight of its class.

    Raises:
      ValueError: `class_weights` is `balanced`, but the train split has no Example of a class.
      InputError: a label is the index of no class.
    """
    loss = setup.architecture.loss
    if setup.job.training.class_weights == "none":
        return loss
    labels = setup.architecture.labels
    return models.weighted_by_class(loss, setup.inputs.class_counts(LABELS, labels), labels)
