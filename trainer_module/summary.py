"""Make the summary of a finished training, which `core.training_summary` stores."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import tensorflow as tf

from core.training_summary import CurvePoint, EpochMetrics, Measured, TrainingSummary
from trainer_module.loop.checkpoints import State
from trainer_module.loop.trainable import Trainable
from trainer_module.models import hyperparameters
from trainer_module.training_setup import Setup


def summarize(
    setup: Setup,
    model: Trainable,
    state: State,
    *,
    strategy_reason: str,
    prepare_seconds: float,
    measured: Measured,
) -> TrainingSummary:
    """Return the summary of a training.

    Args:
      setup: the resolved training.
      model: the trained model.
      state: the state after the last epoch.
      strategy_reason: the reason for the strategy, see `strategies.make_strategy`.
      prepare_seconds: the seconds from the creation of the strategy to the first step.
      measured: the measurements of the steps in this process.
    """
    training, strategy, inputs = setup.job.training, setup.strategy, setup.inputs
    devices = map(tf.DeviceSpec.from_string, strategy.extended.worker_devices)
    processes = setup.cluster.processes if setup.cluster else 1
    if processes > 1:
        # The measurement is that of this process alone, which may only coordinate the others.
        measured = replace(measured, cpu_utilisation=None)
    chosen = hyperparameters(training, setup.job.model_file).model_dump(mode="json")
    return TrainingSummary(
        strategy_reason=strategy_reason,
        model=training.model,
        # JSON has no infinity, which a default of a project's model may be.
        hyperparameters=json.loads(json.dumps(chosen), parse_constant=str),
        learning_rate=setup.learning_rate.peak,
        strategy=type(strategy).__name__,
        processes=processes,
        devices=[f"{device.device_type}:{device.device_index}" for device in devices],
        replicas=strategy.num_replicas_in_sync,
        batch_size_per_replica=setup.inputs.batch_size,
        examples=inputs.train.examples,
        epochs=len(state.history),
        steps_per_epoch=inputs.steps,
        parameter_server_bytes=_bytes_on_servers(model),
        prepare_seconds=round(prepare_seconds, 3),
        measured=measured,
        seconds=round(prepare_seconds + sum(measured.seconds_per_epoch), 3),
        metrics=EpochMetrics(**state.metrics),
        epoch_metrics=[EpochMetrics(**metrics) for metrics in state.history],
        curve=[
            CurvePoint(
                step=int(point["step"]),
                steps=int(point["steps"]),
                loss=point["loss"],
                accuracy=point["accuracy"],
                learning_rate=float(setup.learning_rate(point["step"] - 1)),
            )
            for point in state.curve
        ],
        skipped_warm_start=state.skipped_warm_start,
        skipped_updates=state.skipped_updates,
    )


def _bytes_on_servers(model: Trainable) -> list[int]:
    """Return the bytes of the model's and the optimizer's variables on each parameter server."""
    if not isinstance(model.distribute_strategy, tf.distribute.ParameterServerStrategy):
        # Any attribute of an average of a batch normalization would be a read of this variable,
        # which is a collective operation, and only the chief is here.
        return []
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
