"""The two training loops with equal results: Keras's `fit`, and our own with `strategy.run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from trainer_module.loop.checkpoints import State
from trainer_module.loop.parameter_server import CoordinatorSteps
from trainer_module.loop.steps import (
    NAMES,
    Step,
    Trainable,
    metric_values,
    step_means,
    test_step,
    train_step,
)


@dataclass(frozen=True)
class Plan:
    """The data and the steps of a training.

    Attributes:
      train: number of done steps -> endless distributed dataset that begins after them (under
        parameter servers the dataset of the coordinator).
      evaluation: endless dataset of the eval split.
      steps, eval_steps: steps of one epoch and of one evaluation, over all replicas.
      epochs: number of epochs, including those before a resume.
      first_step: steps done before a resume.
      state: the state of the resumed training, or a new one.
      steps_per_execution: steps that one call of the compiled function executes.
      jit_compile: whether XLA compiles the step.
      workers: number of workers under parameter servers.
      parse_on_worker: parses a batch on a worker under parameter servers.
    """

    train: Callable[[int], Any]
    evaluation: Any
    steps: int
    eval_steps: int
    epochs: int
    first_step: int = 0
    state: State = field(default_factory=State)
    steps_per_execution: int = 1
    jit_compile: bool = False
    workers: int = 1
    parse_on_worker: Callable[[Any], Any] = lambda batch: batch

    def rounds(self) -> list[tuple[int, int, int]]:
        """Return (first step, epoch to stop before, steps of an epoch) of each call of `fit`.

        The first call is for the rest of an interrupted epoch, the next for all complete epochs.
        """
        if self.state.stopped:
            return []
        epoch, done = divmod(self.first_step, self.steps)
        rounds = [(self.first_step, epoch + 1, self.steps - done)] if done else []
        whole = epoch + bool(done)
        if whole < self.epochs:
            rounds.append((whole * self.steps, self.epochs, self.steps))
        return rounds

    @property
    def evaluation_pending(self) -> bool:
        """Whether all steps of the last epoch are done, but its evaluation is not."""
        return self.first_step == (self.state.epochs + 1) * self.steps


def fit(model: Trainable, plan: Plan, callbacks: Sequence[tf_keras.callbacks.Callback]) -> None:
    """Train with Keras's `fit`.

    Under parameter servers train with `custom`: there Keras does not determine which step reads
    which batch.
    """
    if isinstance(model.distribute_strategy, tf.distribute.ParameterServerStrategy):
        custom(model, plan, callbacks)
        return
    model.distribute_reduction_method = "first"
    callbacks = [EpochMetrics(plan.state), *callbacks]
    if plan.evaluation_pending:
        hooks = tf_keras.callbacks.CallbackList(callbacks, model=model, epochs=plan.epochs)
        model.evaluate(plan.evaluation, steps=plan.eval_steps, callbacks=hooks, verbose=2)
        hooks.on_epoch_end(plan.state.epochs)
    for first_step, stop, steps in plan.rounds():
        if model.stop_training:
            break
        model.fit(
            plan.train(first_step),
            steps_per_epoch=steps,
            initial_epoch=first_step // plan.steps,
            epochs=stop,
            validation_data=plan.evaluation,
            validation_steps=plan.eval_steps,
            callbacks=list(callbacks),
            verbose=2,
        )


def custom(model: Trainable, plan: Plan, callbacks: Sequence[tf_keras.callbacks.Callback]) -> None:
    """Train with our own loop over `strategy.run`.

    The loop makes the same calls as fit. Extend it when a training needs a feature that fit lacks.
    """
    train_steps, test_steps = _executors(model, plan)
    hooks = tf_keras.callbacks.CallbackList(callbacks, model=model, epochs=plan.epochs)

    def evaluate(epoch: int) -> None:
        test_steps.reset()
        hooks.on_test_begin()
        test_data = iter(plan.evaluation)
        for step, count in _executions(plan.eval_steps, plan.steps_per_execution):
            hooks.on_test_batch_begin(step)
            hooks.on_test_batch_end(step + count - 1, test_steps(test_data, count))
        evaluated = test_steps.means()
        hooks.on_test_end(evaluated)
        results = plan.state.trained | {f"val_{name}": value for name, value in evaluated.items()}
        hooks.on_epoch_end(epoch, results)
        logging.info("Epoch %d/%d: %s", epoch + 1, plan.epochs, results)

    model.stop_training = False
    hooks.on_train_begin()
    if plan.evaluation_pending:
        evaluate(plan.state.epochs)
    for first_step, stop, steps in plan.rounds():
        train_data = iter(plan.train(first_step))
        for epoch in range(first_step // plan.steps, stop):
            if model.stop_training:
                break
            plan.state.trained = {}
            hooks.on_epoch_begin(epoch)
            train_steps.reset()
            for step, count in _executions(steps, plan.steps_per_execution):
                hooks.on_train_batch_begin(step)
                hooks.on_train_batch_end(step + count - 1, train_steps(train_data, count))
            plan.state.trained = train_steps.means()
            evaluate(epoch)
    hooks.on_train_end()


LOOPS = {"fit": fit, "custom": custom}


def _executions(steps: int, at_once: int) -> list[tuple[int, int]]:
    """Return (steps done before, steps to execute) of each call of the compiled function."""
    return [(step, min(at_once, steps - step)) for step in range(0, steps, at_once)]


class EpochMetrics(tf_keras.callbacks.Callback):
    """A callback that adds the metrics of all steps and replicas to the logs of an epoch.

    The logs of a step have only the loss of this process, because a sum over all processes would
    take longer than a small step. This callback must precede the callbacks that read the logs of an
    epoch.

    Args:
      state: the state of the checkpoints. It keeps the metrics of the training steps during the
        evaluation, so that a training that is interrupted there can resume with the evaluation.
    """

    def __init__(self, state: State):
        super().__init__()
        self._state = state
        self._trains = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._trains = True
        self._state.trained = {}

    def on_test_begin(self, logs: Any = None) -> None:
        # The evaluation is about to reset the metrics.
        if self._trains:
            self._state.trained = metric_values(self.model)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        evaluated = metric_values(self.model)
        logs.update(
            self._state.trained | {f"val_{name}": value for name, value in evaluated.items()}
        )


def _executors(model: Trainable, plan: Plan) -> Sequence[_ReplicaSteps | CoordinatorSteps]:
    """Return the executors of training steps and of evaluation steps."""
    strategy = model.distribute_strategy
    if not isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return [_ReplicaSteps(make(model), model, plan) for make in (train_step, test_step)]

    def parsing(step: Step) -> Step:
        return lambda batch: step(plan.parse_on_worker(batch))

    steps = [parsing(make(model)) for make in (train_step, test_step)]
    return [CoordinatorSteps(step, strategy, plan.workers) for step in steps]


class _ReplicaSteps:
    """An executor of synchronous steps on all replicas; the results are in the model's metrics."""

    def __init__(self, step: Step, model: Trainable, plan: Plan):
        strategy = model.distribute_strategy
        if plan.jit_compile:
            step = tf.function(step, jit_compile=True, reduce_retracing=True)

        @tf.function
        def steps(data: Any, count: tf.Tensor) -> dict[str, tf.Tensor]:
            sums = {name: tf.zeros([2]) for name in NAMES}
            for _ in tf.range(count):
                of_replicas = strategy.run(step, args=(next(data),))
                sums = {
                    name: strategy.experimental_local_results(of_replicas[name])[0]
                    for name in NAMES
                }
            return step_means(sums)

        self._steps = steps
        self._model = model

    def reset(self) -> None:
        """Reset the means."""
        self._model.reset_metrics()

    def __call__(self, data: Any, count: int) -> dict[str, tf.Tensor]:
        """Execute `count` steps on the iterator `data`; return a replica's means of the last
        step."""
        return self._steps(data, tf.constant(count))

    def means(self) -> dict[str, float]:
        """Return the means over all steps and replicas since `reset`."""
        return metric_values(self._model)
