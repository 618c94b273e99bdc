"""One training, under any strategy: inputs, model, loop, checkpoints, export."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass

import tensorflow as tf
import tf_keras
from absl import logging

from core.processes import signals_to
from core.progress import report_stage
from core.training_summary import write_summary
from examples.counts import NGRAMS
from examples.tfrecords import report_damaged_file
from trainer_module import strategies, weights
from trainer_module.cluster.collective import PreemptionSync
from trainer_module.cluster.tf_config import Cluster
from trainer_module.loop import checkpoint_folders
from trainer_module.loop.callbacks import (
    EarlyStopping,
    Measurements,
    SaveRegularly,
    SkippedUpdates,
    StepProgress,
    StopOnNonFiniteLoss,
    TensorBoard,
)
from trainer_module.loop.checkpoints import Checkpoints
from trainer_module.loop.finite import NotFiniteError, check_updates, not_finite
from trainer_module.loop.loops import LOOPS, Plan
from trainer_module.loop.trainable import Trainable
from trainer_module.settings import Training, TrainingJob
from trainer_module.summary import summarize
from trainer_module.training_setup import Setup, build_model, resolve

_SEED_MODULUS = 2**31 - 1
"""TensorFlow takes the remainder of a division by this number as its global seed."""


def train(job: TrainingJob, cluster: Cluster | None) -> None:
    """Train and export the model of `job`.

    Under parameter servers, a server or worker runs until another process ends it.

    Args:
      job: the job.
      cluster: the cluster of TF_CONFIG, of which this process is a task; None: it trains alone.

    Raises:
      ValueError: TF_CONFIG, the strategy or the settings contradict each other; or there is no
        Example to train on; or a loss or a weight became NaN or infinite.
      InputError: a file of Examples is damaged.
      CheckpointError: a checkpoint could not be written or read.
      RuntimeError: this process has executed an operation of TensorFlow before the strategy was
        created.
      tensorflow.errors.OpError: a file cannot be read or written, or another process of the cluster
        is gone; see `cluster.exits.is_lost_peer`.
      SystemExit: this process received SIGTERM, and has written a checkpoint.
    """
    if cluster is not None and cluster.serves:
        strategies.serve(cluster)
    chief = cluster is None or cluster.chief
    # The other processes read checkpoints only after a collective count of the input files, which
    # the chief joins after it has adopted one.
    continued = checkpoint_folders.continued(job.checkpoint_dir)
    with continued if chief else contextlib.nullcontext():
        trained = train_model(job, cluster)
        _export(trained.setup, trained.model)
        trained.setup.collective.wait_for_all()
    trained.checkpoints.remove()


@dataclass(frozen=True)
class TrainingResult:
    """A trained model under its strategy.

    Attributes:
      setup: the resolved training.
      model: the model, with the weights after the last or the best epoch.
      metrics: loss, accuracy, val_loss and val_accuracy of the epoch that ended with these weights.
      checkpoints: the checkpoints, which the caller removes after the model is stored.
    """

    setup: Setup
    model: Trainable
    metrics: dict[str, float]
    checkpoints: Checkpoints


def train_model(job: TrainingJob, cluster: Cluster | None) -> TrainingResult:
    """Train the model of `job` without exporting it.

    Arguments and exceptions are those of `train`.
    """
    # A strategy must be created before any other TensorFlow op.
    strategy, reason = strategies.make_strategy(job.training, cluster)
    # With a global seed of 0 no data set can have a tensor as its seed.
    seed = job.training.seed
    tf_keras.utils.set_random_seed(seed if seed % _SEED_MODULUS else 1)
    started = time.perf_counter()
    report_stage("building the model")
    setup = resolve(job, cluster, strategy)
    model = build_model(setup)
    name = cluster.name.replace(" ", "-") if cluster else "chief"
    checkpoints = Checkpoints(job.checkpoint_dir, model, chief=setup.chief, name=name)
    state = checkpoints.state
    first_step = checkpoints.restore(setup.inputs.global_batch)
    if not first_step:
        state.skipped_warm_start = _set_first_weights(setup, model)
    prepare_seconds = time.perf_counter() - started

    measurements = Measurements(setup.inputs.train.examples, first_step, state.usage)
    report_stage("compiling the training step")
    _run_loop(setup, model, checkpoints, measurements, first_step)
    check_updates(state.skipped_updates, measurements.step)
    if state.skipped_updates:
        logging.warning(
            "training.mixed_precision: float16: a gradient overflowed in %d of %d steps, whose "
            "updates were skipped",
            state.skipped_updates,
            measurements.step,
        )
    checkpoints.restore_best()
    if setup.chief:
        summary = summarize(
            setup,
            model,
            state,
            strategy_reason=reason,
            prepare_seconds=prepare_seconds,
            measured=measurements.summary(),
        )
        write_summary(job.model_run_dir, summary)
    return TrainingResult(setup, model, state.metrics, checkpoints)


def _set_first_weights(setup: Setup, model: Trainable) -> str:
    """Use the weights of the base model if they fit; otherwise adapt `model` to the train split.

    Returns:
      The reason why the weights of the base model do not fit; empty if they do, or without one.
    """
    job, architecture = setup.job, setup.architecture
    reason = ""
    if job.base_model:
        plain = architecture.plain_model(job.transform)
        reason = weights.other_classes(job, architecture.labels)
        if not reason:
            reason = weights.warm_start(job, architecture.features, plain, model)
        if not reason:
            return ""
        logging.warning("Warm start skipped: %s; using new weights", reason)
    if architecture.adapt is not None:
        counts = setup.inputs.class_counts(NGRAMS, architecture.labels)
        architecture.adapt(model, counts)
    return reason


def _run_loop(
    setup: Setup,
    model: Trainable,
    checkpoints: Checkpoints,
    measurements: Measurements,
    first_step: int,
) -> None:
    """Take all steps from `first_step` on, with the callbacks of this process."""
    training, inputs, state = setup.job.training, setup.inputs, checkpoints.state
    workers = setup.cluster.workers if setup.cluster else 1
    plan = Plan(inputs, training, state, first_step, workers)
    _check_profile(training, plan)
    sync = PreemptionSync(setup.collective)
    files = [*inputs.train.files, *inputs.evaluation.files]
    if inputs.epochs > training.epochs:
        logging.info(
            "training.min_examples_seen %d requires %d epochs, training.epochs is %d",
            training.min_examples_seen,
            inputs.epochs,
            training.epochs,
        )
    with signals_to(sync.request, signal.SIGTERM), report_damaged_file(files):
        callbacks = [
            StopOnNonFiniteLoss(first_step),
            measurements,
            StepProgress(inputs.steps, inputs.epochs, first_step),
        ]
        if getattr(model.optimizer, "dynamic", False):  # it scales the loss
            callbacks.append(SkippedUpdates(first_step, state))
        if training.early_stopping:
            callbacks.append(EarlyStopping(training.early_stopping, checkpoints))
        callbacks.append(
            SaveRegularly(checkpoints, training.checkpoint_steps, inputs.steps, first_step, sync)
        )
        if setup.chief:
            logs = os.path.join(setup.job.model_run_dir, "logs")
            profiled = training.profile_steps or 0
            callbacks.append(TensorBoard(logs, write_graph=False, profile_batch=profiled))
        LOOPS[training.loop](model, plan, callbacks)


def _check_profile(training: Training, plan: Plan) -> None:
    """Check that the training has the first call that is profiled.

    Raises:
      ValueError: it has not. A resumed training only logs this, because few calls may be left.
    """
    if training.profile_steps is None or training.profile_steps[0] <= plan.calls():
        return
    problem = (
        f"training.profile_steps: {list(training.profile_steps)} begins after the last of "
        f"{plan.calls()} calls of the compiled train function"
    )
    if not plan.first_step:
        raise ValueError(f"{problem}; set earlier ones")
    logging.warning("%s, which are left; nothing is profiled", problem)


def _export(setup: Setup, model: Trainable) -> None:
    """Export a copy of the model without devices and servers; only the chief writes it.

    Raises:
      NotFiniteError: a weight of the exported model is NaN or infinite. The weights of the trained
        model were checked.
    """
    job, architecture = setup.job, setup.architecture
    plain = architecture.plain_model(job.transform)
    # Reading a variable can be a collective operation, so every process does it.
    weights.gather(model, plain)
    if not setup.chief:
        return
    report_stage("exporting the model")
    # The import of TFT takes seconds, and only the chief needs it.
    from trainer_module import export

    exported = architecture.exported(plain)
    name = not_finite([*exported.served.variables, *exported.base.variables])
    if name is not None:
        raise NotFiniteError(
            f"the weights {name} of the exported model are not finite, but those of the trained "
            f"model are; correct the function `exported` of the model {job.training.model}"
        )
    export.save(
        exported,
        job.transform_graph,
        job.serving_model_dir,
        job.transform,
        architecture.labels,
    )
    weights.write_origin(job, architecture.features)
    logging.info("Model written to %s with TensorFlow %s", job.serving_model_dir, tf.__version__)
