"""One training, under any strategy: inputs, model, loop, checkpoints, export."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from core.processes import signals_to
from core.training_summary import write_summary
from examples.counts import LABELS, NGRAMS
from examples.tfrecords import damage_named
from preprocessing.features import CLASSES
from trainer_module import models, strategies, weights
from trainer_module.cluster.collective import Collective, PreemptionSync
from trainer_module.cluster.tf_config import Cluster
from trainer_module.inputs.dataset import Inputs
from trainer_module.loop import checkpoint_folders
from trainer_module.loop.callbacks import (
    Measurements,
    StepProgress,
    StopOnNonFiniteLoss,
    TensorBoard,
    TrainingCurve,
)
from trainer_module.loop.checkpoints import Checkpoints, EarlyStopping, SaveRegularly
from trainer_module.loop.loops import LOOPS, Plan
from trainer_module.loop.steps import Loss, Trainable, WarmUp, make_schedule
from trainer_module.settings import Training, TrainingJob

_SHORTENED_TO_0 = 2**31 - 1
"""TensorFlow takes the remainder of a division by this number as its global seed."""


def train(job: TrainingJob) -> None:
    """Train and export the model of `job`, as this process's task of the cluster if there is one.

    Under parameter servers, a server or worker runs until its process is ended from outside.

    Raises:
      ValueError: TF_CONFIG, the strategy or the settings contradict each other; or there is no
        Example to train on; or a loss or a weight became NaN or infinite.
      CheckpointError: a checkpoint could not be written or read.
      SystemExit: this process received SIGTERM, and has written a checkpoint.
    """
    cluster = Cluster.from_environ(os.environ)
    if cluster is not None and cluster.serves:
        strategies.serve(cluster)
    chief = cluster is None or cluster.chief
    # The other processes read checkpoints only after a collective count of the input files, which
    # the chief joins after it has adopted one.
    continued = checkpoint_folders.continued(job.checkpoint_dir)
    with continued if chief else contextlib.nullcontext():
        trained = fit(job, cluster)
        _export(job, trained.model, chief=chief)
        trained.collective.wait_for_all()
    trained.checkpoints.remove()


@dataclass(frozen=True)
class TrainingResult:
    """A trained model under its strategy, and loss, accuracy, val_loss and val_accuracy of the
    epoch that ended with its weights."""

    model: Trainable
    metrics: dict[str, float]
    checkpoints: Checkpoints
    collective: Collective


def fit(job: TrainingJob, cluster: Cluster | None) -> TrainingResult:
    """Train the model of `job` without exporting it; see `train` for the errors."""
    training = job.training
    # A strategy must be created before any other TensorFlow op.
    strategy, reason = strategies.make_strategy(training, cluster)
    # With a global seed of 0 no data set can have a tensor as its seed.
    tf_keras.utils.set_random_seed(training.seed if training.seed % _SHORTENED_TO_0 else 1)
    started = time.perf_counter()
    module = models.load(training.model)
    collective = Collective(strategy, cluster)
    inputs = Inputs(job, module.FEATURES, strategy, collective)
    rate = make_schedule(
        training, module.LEARNING_RATE, inputs.global_batch, inputs.steps * training.epochs
    )
    model = build_model(job, inputs, strategy, rate)

    chief = cluster is None or cluster.chief
    task = cluster.name.replace(" ", "-") if cluster else "chief"
    checkpoints = Checkpoints(job.checkpoint_dir, model, chief=chief, name=task)
    state = checkpoints.state
    first_step = checkpoints.restore(inputs.global_batch)
    if not first_step:
        _set_first_weights(job, model, inputs)
    prepared_seconds = time.perf_counter() - started

    measurements = Measurements(inputs.train.examples, first_step, state.usage)
    total_steps, patience = inputs.steps * training.epochs, training.early_stopping
    sync = PreemptionSync(collective)
    files = [*inputs.train.files, *inputs.evaluation.files]
    with signals_to(sync.request, signal.SIGTERM), damage_named(files):
        callbacks = [
            StopOnNonFiniteLoss(first_step),
            measurements,
            TrainingCurve(first_step, total_steps, state.curve, inputs.examples_of_step),
            StepProgress(inputs.steps, training.epochs, first_step),
            *([EarlyStopping(patience, checkpoints)] if patience else []),
            SaveRegularly(checkpoints, training.checkpoint_steps, inputs.steps, first_step, sync),
        ]
        if chief:
            logs = os.path.join(job.model_run_dir, "logs")
            profiled = training.profile_steps or 0
            callbacks.append(TensorBoard(logs, write_graph=False, profile_batch=profiled))
        plan = Plan(inputs, training, state, first_step, cluster.workers if cluster else 1)
        LOOPS[training.loop](model, plan, callbacks)
    checkpoints.restore_best()
    metrics = state.history[-1 if state.best_epoch is None else state.best_epoch]
    if chief:
        measured = measurements.summary()
        figures = {
            "strategy_reason": reason,
            **_configuration(job, inputs, model, cluster, epochs=len(state.history)),
            "prepare_seconds": round(prepared_seconds, 3),
            **measured,
            "seconds": round(prepared_seconds + sum(measured["seconds_per_epoch"]), 3),
            **metrics,
            "epoch_metrics": state.history,
            "curve": [
                {**point, "learning_rate": float(rate(point["step"] - 1))} for point in state.curve
            ],
        }
        write_summary(job.model_run_dir, figures)
    return TrainingResult(model, metrics, checkpoints, collective)


def _configuration(
    job: TrainingJob, inputs: Inputs, model: Trainable, cluster: Cluster | None, *, epochs: int
) -> dict[str, Any]:
    """Return what training.json contains about the model, the data and the devices.

    `epochs` are those that were trained, which early stopping may have ended.
    """
    strategy = model.distribute_strategy
    devices = map(tf.DeviceSpec.from_string, strategy.extended.worker_devices)
    return {
        "model": job.training.model,
        "strategy": type(strategy).__name__,
        "processes": cluster.processes if cluster else 1,
        "devices": [f"{device.device_type}:{device.device_index}" for device in devices],
        "replicas": strategy.num_replicas_in_sync,
        "batch_size_per_replica": job.training.batch_size_per_replica,
        "examples": inputs.train.examples,
        "epochs": epochs,
        "steps_per_epoch": inputs.steps,
        "parameter_server_bytes": _bytes_on_servers(model),
    }


def _bytes_on_servers(model: Trainable) -> list[int]:
    """Return the bytes of the model's and the optimizer's variables on each parameter server."""
    parts = {
        id(part): part
        for variable in (*model.variables, *model.optimizer.variables())
        for part in getattr(variable, "variables", [variable])
    }
    held: Counter[int] = Counter()
    for part in parts.values():
        device = tf.DeviceSpec.from_string(part.device)
        if device.job == "ps":
            held[device.task] += part.shape.num_elements() * part.dtype.size
    return [held[task] for task in sorted(held)]


def build_model(
    job: TrainingJob, inputs: Inputs, strategy: tf.distribute.Strategy, rate: WarmUp
) -> Trainable:
    """Build and compile the model under its strategy."""
    training = job.training
    module = models.load(training.model)
    policy = (
        "float32" if training.mixed_precision == "none" else f"mixed_{training.mixed_precision}"
    )
    tf_keras.mixed_precision.set_global_policy(policy)
    loss = _loss(training, inputs)
    with strategy.scope():
        net = module.build(
            models.hyperparameters(training), job.transform, static_shapes=inputs.static_shapes
        )
        model = Trainable(net, loss, training.seed)
        model.compile(
            optimizer=module.optimizer(rate),
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
        training.batch_size_per_replica,
        inputs.steps,
        rate.peak,
    )
    return model


def _loss(training: Training, inputs: Inputs) -> Loss:
    """Return the loss of each Example, with `class_weights` multiplied by the weight of its class.

    The weights follow from the train split as a whole, and their mean over it is 1. So the loss
    remains a mean over Examples, however they are divided into batches, replicas and processes.
    """
    loss: Loss = getattr(models.load(training.model), "loss", models.loss)
    if training.class_weights == "none":
        return loss
    counts = inputs.class_counts(LABELS)
    if not counts.all():
        missing = CLASSES[int(counts[0] > 0)]
        raise ValueError(
            f"training.class_weights: balanced, but the train split has no {missing} reviews; add "
            "some, or set none"
        )
    negative, positive = (counts.sum() / (2 * counts)).tolist()
    return lambda label, logit: loss(label, logit) * tf.where(label[:, 0] > 0, positive, negative)


def _plain_model(job: TrainingJob) -> tf_keras.Model:
    """Build the model to export: outside any strategy, in float32, for dynamic shapes."""
    tf_keras.mixed_precision.set_global_policy("float32")
    with tf.device("/CPU:0"):
        module = models.load(job.training.model)
        return module.build(models.hyperparameters(job.training), job.transform)


def _set_first_weights(job: TrainingJob, model: Trainable, inputs: Inputs) -> None:
    """Set the weights of the base model if it fits; otherwise adapt `model` to the train split."""
    module = models.load(job.training.model)
    if job.base_model and weights.warm_start(job, module.FEATURES, _plain_model(job), model):
        return
    if hasattr(module, "adapt"):
        module.adapt(model, inputs.class_counts(NGRAMS))


def _export(job: TrainingJob, model: Trainable, *, chief: bool) -> None:
    """Export a model without devices and servers in the chief."""
    plain = _plain_model(job)
    # Reading a variable can be a collective operation, so every process does it.
    weights.gather(model, plain)
    if not chief:
        return
    # The import of TFT takes seconds, and only the chief needs it.
    from trainer_module import export

    module = models.load(job.training.model)
    if hasattr(module, "exported"):
        plain = module.exported(plain, models.hyperparameters(job.training))
    export.save(plain, job.transform_graph, job.serving_model_dir, job.transform)
    weights.write_origin(job, module.FEATURES)
    logging.info("Model written to %s with TensorFlow %s", job.serving_model_dir, tf.__version__)
