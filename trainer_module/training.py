"""One training, under any strategy: inputs, model, loop, checkpoints, export."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from preprocessing.features import CLASSES
from trainer_module import models, strategies, weights
from trainer_module.cluster.collective import Collective
from trainer_module.cluster.tf_config import Cluster
from trainer_module.inputs.dataset import Inputs
from trainer_module.loop import checkpoint_folders, schedule
from trainer_module.loop.callbacks import StepProgress, StopOnNonFiniteLoss, best_effort
from trainer_module.loop.checkpoints import Checkpoints, EarlyStopping, SaveRegularly
from trainer_module.loop.loops import LOOPS, Plan
from trainer_module.loop.measurements import (
    Measurements,
    TrainingCurve,
    configuration,
    write_summary,
)
from trainer_module.loop.preemption import PreemptionSignal, PreemptionSync
from trainer_module.loop.steps import Loss, Trainable
from trainer_module.settings import Training, TrainingJob


def train(job: TrainingJob) -> None:
    """Train and export the model of `job`, as this process's task of the cluster if there is one.

    Under parameter servers, a server or worker runs until its process is ended from outside.

    Raises:
      ValueError: TF_CONFIG, the strategy or the settings contradict each other; or there is no
        Example to train on; or the loss became NaN or infinite.
      CheckpointError: a checkpoint could not be written or read.
      SystemExit: this process received SIGTERM, and has written a checkpoint.
    """
    cluster = Cluster.from_environ(os.environ)
    if cluster is not None and cluster.serves:
        strategies.serve(cluster)
    chief = cluster is None or cluster.chief
    # The other processes read checkpoints only after a collective count of the input files, which
    # the chief joins after it has claimed the folder.
    claimed = checkpoint_folders.claimed(job.checkpoint_dir, cluster)
    with claimed if chief else contextlib.nullcontext():
        trained = fit(job, cluster)
        _export(job, trained)
        if chief:
            checkpoint_folders.remove_stale(job.checkpoint_dir)
        trained.checkpoints.remove()


@dataclass(frozen=True)
class Trained:
    """The result of a training in memory.

    Attributes:
      model: the trained model, under its strategy.
      module: the module in `models` that built it.
      metrics: loss, accuracy, val_loss and val_accuracy of the epoch that ended with these weights.
      checkpoints: the checkpoints, to be removed after the export.
      collective: the Collective with the other processes.
      chief: whether this process exports the model.
    """

    model: tf_keras.Model
    module: ModuleType
    metrics: dict[str, float]
    checkpoints: Checkpoints
    collective: Collective
    chief: bool


def fit(job: TrainingJob, cluster: Cluster | None) -> Trained:
    """Train the model of `job` without exporting it; see `train` for the errors."""
    training = job.training
    # A strategy must be created before any other TensorFlow op.
    strategy, reason = strategies.make_strategy(training, cluster)
    tf_keras.utils.set_random_seed(training.seed)
    started = time.perf_counter()
    module = models.load(training.model)
    collective = Collective(strategy, cluster)
    inputs = Inputs(job, module.FEATURES, strategy, collective)
    model = build_model(job, module, inputs, strategy)

    chief = cluster is None or cluster.chief
    task = cluster.name.replace(" ", "-") if cluster else "chief"
    checkpoints = Checkpoints(job.checkpoint_dir, model, chief=chief, name=task)
    first_step = checkpoints.restore(inputs.global_batch, _settings(job))
    if not first_step:
        _set_first_weights(job, module, model, inputs)
    prepared_seconds = time.perf_counter() - started

    measurements = Measurements(inputs.global_batch, first_step, checkpoints.state.usage)
    plan = Plan(
        train=inputs.train_dataset,
        evaluation=inputs.eval_dataset(),
        steps=inputs.steps,
        eval_steps=inputs.eval_steps,
        epochs=training.epochs,
        first_step=first_step,
        state=checkpoints.state,
        steps_per_execution=training.steps_per_execution,
        jit_compile=_jit_compile(training, strategy),
        workers=cluster.workers if cluster else 1,
        parse_on_worker=inputs.parse_on_worker,
    )
    total_steps, patience = inputs.steps * training.epochs, training.early_stopping
    with PreemptionSignal() as preemption:
        sync = PreemptionSync(preemption, collective)
        callbacks = [
            StopOnNonFiniteLoss(first_step),
            measurements,
            TrainingCurve(first_step, total_steps, checkpoints.state.curve),
            StepProgress(inputs.steps, training.epochs, first_step),
            *([EarlyStopping(patience, checkpoints)] if patience else []),
            SaveRegularly(checkpoints, training.checkpoint_steps, first_step, sync),
            *([_board(job)] if chief else []),
        ]
        LOOPS[training.loop](model, plan, callbacks)
    checkpoints.restore_best()
    results = checkpoints.state.best_metrics or checkpoints.state.metrics
    if chief:
        measured = measurements.summary()
        rate = _rate(training, module, inputs)
        seconds = prepared_seconds + sum(measured["seconds_per_epoch"])
        figures = {
            "strategy_reason": reason,
            **configuration(job, inputs, model, cluster),
            "prepare_seconds": round(prepared_seconds, 3),
            **measured,
            "seconds": round(seconds, 3),
            **results,
            "epoch_metrics": checkpoints.state.history,
            "curve": [
                {**point, "learning_rate": float(rate(point["step"] - 1))}
                for point in checkpoints.state.curve
            ],
        }
        write_summary(job, figures)
    return Trained(model, module, results, checkpoints, collective, chief)


def build_model(
    job: TrainingJob,
    module: ModuleType,
    inputs: Inputs,
    strategy: tf.distribute.Strategy,
) -> tf_keras.Model:
    """Build and compile the model under its strategy."""
    training = job.training
    policy = (
        "float32" if training.mixed_precision == "none" else f"mixed_{training.mixed_precision}"
    )
    tf_keras.mixed_precision.set_global_policy(policy)
    rate, loss = _rate(training, module, inputs), _loss(training, module, inputs)
    with strategy.scope():
        net = module.build(
            _hyperparameters(training), job.transform, static_shapes=inputs.static_shapes
        )
        model = Trainable(net, loss, training.seed)
        model.compile(
            optimizer=module.optimizer(rate),
            jit_compile=_jit_compile(training, strategy),
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
        rate.get_config()["peak"],
    )
    return model


def _rate(training: Training, module: ModuleType, inputs: Inputs) -> schedule.WarmUp:
    """Return the learning rate over the steps of the training."""
    total_steps = inputs.steps * training.epochs
    return schedule.make_schedule(training, module.LEARNING_RATE, inputs.global_batch, total_steps)


def _loss(training: Training, module: ModuleType, inputs: Inputs) -> Loss:
    """Return the loss of each Example, with `class_weights` multiplied by the weight of its class.

    The weights follow from the train split as a whole, and their mean over it is 1. So the loss
    remains a mean over Examples, however they are divided into batches, replicas and processes.

    Raises:
      ValueError: the train split has only one class.
    """
    loss: Loss = models.loss_of(module)
    if training.class_weights == "none":
        return loss
    counts = inputs.label_counts()
    if not counts.all():
        missing = CLASSES[int(counts[0] > 0)]
        raise ValueError(
            f"training.class_weights: balanced, but the train split has no {missing} reviews; add "
            "some, or set none"
        )
    negative, positive = (counts.sum() / (2 * counts)).tolist()
    return lambda label, logit: loss(label, logit) * tf.where(label[:, 0] > 0, positive, negative)


def _jit_compile(training: Training, strategy: tf.distribute.Strategy) -> bool:
    """Return whether XLA compiles the step; a TPU compiles every step by itself."""
    return training.jit_compile and not isinstance(strategy, tf.distribute.TPUStrategy)


def _plain_model(job: TrainingJob, module: ModuleType) -> tf_keras.Model:
    """Build the model to export: outside any strategy, in float32, for dynamic shapes."""
    tf_keras.mixed_precision.set_global_policy("float32")
    with tf.device("/CPU:0"):
        return module.build(_hyperparameters(job.training), job.transform)


def _hyperparameters(training: Training) -> Any:
    return models.hyperparameters(training.model, training.hyperparameters)


def _settings(job: TrainingJob) -> dict[str, Any]:
    """Return key -> JSON value of what defines the training."""
    sections = {"training": job.training, "transform": job.transform}
    settings = {
        f"{name}.{key}": value
        for name, section in sections.items()
        for key, value in section.model_dump(mode="json").items()
        if key not in ("checkpoint_steps", "profile_steps")
    }
    return {"input": checkpoint_folders.input_digest(job), **settings}


def _set_first_weights(
    job: TrainingJob,
    module: ModuleType,
    model: tf_keras.Model,
    inputs: Inputs,
) -> None:
    """Set the weights of the base model if it fits; otherwise adapt `model` to the train split."""
    if job.base_model and weights.warm_start(
        job, module.FEATURES, _plain_model(job, module), model
    ):
        return
    if hasattr(module, "adapt"):
        module.adapt(model, inputs.ngram_counts())


def _board(job: TrainingJob) -> tf_keras.callbacks.Callback:
    """Return the callback that writes to the log folder of TensorBoard."""
    # TensorBoard's profiler counts calls of the compiled function since the start of the process.
    # Its `write_steps_per_second` would take 0.2 ms a step.
    steps, at_once = job.training.profile_steps, job.training.steps_per_execution
    board = tf_keras.callbacks.TensorBoard(
        os.path.join(job.model_run_dir, "logs"),
        write_graph=False,
        update_freq="epoch",
        profile_batch=tuple(-(-step // at_once) for step in steps) if steps else 0,
    )
    return best_effort(board)


def _export(job: TrainingJob, trained: Trained) -> None:
    """Export a model without devices and servers in the chief; the other processes wait for it."""
    plain = _plain_model(job, trained.module)
    # Reading a variable can be a collective operation, so every process does it.
    weights.gather(trained.model, plain)
    if trained.chief:
        # The import of TFT takes seconds, and only the chief needs it.
        from trainer_module import export

        if hasattr(trained.module, "exported"):
            plain = trained.module.exported(plain, _hyperparameters(job.training))
        export.save(plain, job.transform_graph, job.serving_model_dir, job.transform)
        weights.write_origin(job, trained.module.FEATURES)
        logging.info(
            "Model written to %s with TensorFlow %s", job.serving_model_dir, tf.__version__
        )
    trained.collective.wait_for_all()
