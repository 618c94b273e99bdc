"""Two training loops with equal results: Keras's `fit`, and our own with `strategy.run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras
from absl import logging

from trainer_module.inputs.dataset import Inputs
from trainer_module.loop.callbacks import TrainingCurve
from trainer_module.loop.checkpoints import State
from trainer_module.loop.parameter_server import CoordinatorSteps
from trainer_module.loop.sums import NAMES, Step, step_means
from trainer_module.loop.trainable import Trainable
from trainer_module.settings import Training


class Round(NamedTuple):
    """A call of Keras's `fit`, or of the loop that replaces it.

    Attributes:
      first_step: the number of steps before it.
      stop: the number of the epoch before which it ends.
      steps: the number of steps in each of its epochs.
    """

    first_step: int
    stop: int
    steps: int


@dataclass(frozen=True)
class Plan:
    """The remaining steps of a training.

    Attributes:
      inputs: the splits.
      training: the settings.
      state: the state, which the callbacks update.
      first_step: the number of steps that a resumed training has already done.
      workers: the number of processes that compute gradients.
    """

    inputs: Inputs
    training: Training
    state: State
    first_step: int = 0
    workers: int = 1

    def rounds(self) -> list[Round]:
        """Return the calls of `fit`.

        The first call is for the rest of an interrupted epoch, the next for all complete epochs.
        """
        if self.state.stopped:
            return []
        steps = self.inputs.steps
        epoch, done = divmod(self.first_step, steps)
        rounds = [Round(self.first_step, epoch + 1, steps - done)] if done else []
        whole = epoch + bool(done)
        if whole < self.inputs.epochs:
            rounds.append(Round(whole * steps, self.inputs.epochs, steps))
        return rounds

    def calls(self) -> int:
        """Return the number of calls of the compiled train function."""
        at_once = self.training.steps_per_execution
        return sum(
            (round.stop - round.first_step // self.inputs.steps) * -(-round.steps // at_once)
            for round in self.rounds()
        )

    def curve(self, examples_of_step: Callable[[int], int] | None) -> TrainingCurve:
        """Return the callback that records the curve of the remaining steps.

        Args:
          examples_of_step: see `TrainingCurve`.
        """
        total_steps = self.inputs.steps * self.inputs.epochs
        return TrainingCurve(self.first_step, total_steps, self.state.curve, examples_of_step)


def keras_loop(
    model: Trainable, plan: Plan, callbacks: Sequence[tf_keras.callbacks.Callback]
) -> None:
    """Train with Keras's `fit`.

    Under parameter servers train with `custom_loop`, because Keras does not determine which step
    reads which batch under this strategy.

    Args:
      model: the compiled model, with the weights after `plan.first_step`.
      plan: the steps to take.
      callbacks: called in this order.

    Raises:
      NotFiniteError, CheckpointError, SystemExit: for the reasons in
        `callbacks.StopOnNonFiniteLoss` and `callbacks.SaveRegularly`.
      tensorflow.errors.OpError: a file cannot be read, or another process of the cluster is gone.
    """
    if isinstance(model.distribute_strategy, tf.distribute.ParameterServerStrategy):
        custom_loop(model, plan, callbacks)
        return
    model.distribute_reduction_method = "first"
    metrics = AddEpochMetrics(plan.inputs.epochs, model.means, model.means)
    callbacks = [metrics, plan.curve(plan.inputs.examples_of_step), *callbacks]
    inputs, evaluation = plan.inputs, plan.inputs.eval_dataset()
    for first_step, stop, steps in plan.rounds():
        if model.stop_training:
            break
        model.fit(
            inputs.train_dataset(first_step),
            steps_per_epoch=steps,
            initial_epoch=first_step // inputs.steps,
            epochs=stop,
            validation_data=evaluation,
            validation_steps=inputs.eval_steps,
            callbacks=list(callbacks),
            verbose=0,
        )


def custom_loop(
    model: Trainable, plan: Plan, callbacks: Sequence[tf_keras.callbacks.Callback]
) -> None:
    """Train with our own loop over `strategy.run`, which makes the same calls as Keras's `fit`.

    Arguments and errors are those of `keras_loop`.
    """
    train_steps, test_steps, curve = _executors(model, plan)
    metrics = AddEpochMetrics(plan.inputs.epochs, train_steps.means, test_steps.means)
    hooks = tf_keras.callbacks.CallbackList([metrics, curve, *callbacks], model=model)
    inputs, evaluation = plan.inputs, plan.inputs.eval_dataset()

    def executions(steps: int) -> Iterator[tuple[int, int]]:
        """Yield (first step, number of steps) of each call of the compiled function."""
        at_once = plan.training.steps_per_execution
        return ((step, min(at_once, steps - step)) for step in range(0, steps, at_once))

    def evaluate() -> None:
        hooks.on_test_begin()
        test_steps.reset()
        data = iter(evaluation)
        for step, count in executions(inputs.eval_steps):
            hooks.on_test_batch_begin(step)
            hooks.on_test_batch_end(step + count - 1, test_steps(data, count))
        hooks.on_test_end()

    model.stop_training = False
    hooks.on_train_begin()
    for first_step, stop, steps in plan.rounds():
        data = iter(inputs.train_dataset(first_step))
        for epoch in range(first_step // inputs.steps, stop):
            if model.stop_training:
                break
            hooks.on_epoch_begin(epoch)
            train_steps.reset()
            for step, count in executions(steps):
                hooks.on_train_batch_begin(step)
                hooks.on_train_batch_end(step + count - 1, train_steps(data, count))
            evaluate()
            hooks.on_epoch_end(epoch)
    hooks.on_train_end()


LOOPS = {"fit": keras_loop, "custom": custom_loop}
"""`training.loop` -> the loop."""


class AddEpochMetrics(tf_keras.callbacks.Callback):
    """A callback that adds the metrics of all steps and replicas to the logs of an epoch.

    This callback must precede the callbacks that read these logs.

    Args:
      epochs: the number of epochs, for the log.
      trained: () -> the metrics of the training steps since the last reset.
      evaluated: () -> the metrics of the evaluation steps since the last reset.
    """

    def __init__(
        self,
        epochs: int,
        trained: Callable[[], dict[str, float]],
        evaluated: Callable[[], dict[str, float]],
    ):
        super().__init__()
        self._epochs, self._trained, self._evaluated = epochs, trained, evaluated
        self._of_training: dict[str, float] = {}

    def on_test_begin(self, logs: Any = None) -> None:
        # The evaluation is about to reset the metrics.
        self._of_training = self._trained()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        evaluated = {f"val_{name}": value for name, value in self._evaluated().items()}
        logs.update(self._of_training | evaluated)
        logging.info("Epoch %d/%d: %s", epoch + 1, self._epochs, logs)


def _executors(
    model: Trainable, plan: Plan
) -> tuple[_ReplicaSteps | CoordinatorSteps, _ReplicaSteps | CoordinatorSteps, TrainingCurve]:
    """Return the executors of training steps and of evaluation steps, and the curve of the former.

    The results of steps with parameter servers arrive after the calls of the callbacks.
    """
    strategy = model.distribute_strategy
    if not isinstance(strategy, tf.distribute.ParameterServerStrategy):
        train, test = (_ReplicaSteps(step, model) for step in (model.train_sums, model.test_sums))
        return train, test, plan.curve(plan.inputs.examples_of_step)

    def parsing(step: Step) -> Step:
        return lambda batch: step(plan.inputs.parse_on_worker(batch))

    curve = plan.curve(None)
    steps = CoordinatorSteps(parsing(model.train_sums), strategy, plan.workers, curve.add_result)
    model.wait_for_steps = steps.totals
    return steps, CoordinatorSteps(parsing(model.test_sums), strategy, plan.workers), curve


class _ReplicaSteps:
    """An executor of synchronous steps on all replicas; the results are in the model's metrics."""

    def __init__(self, step: Step, model: Trainable):
        strategy = model.distribute_strategy
        if model.jit_compile:
            step = tf.function(step, jit_compile=True, reduce_retracing=True)

        @tf.function
        def steps(data: Any, count: tf.Tensor) -> dict[str, tf.Tensor]:
            sums = {name: tf.zeros([2]) for name in NAMES}
            for _ in tf.range(count):
                results = strategy.run(step, args=(next(data),))
                sums = {
                    name: strategy.experimental_local_results(results[name])[0] for name in NAMES
                }
            return step_means(sums)

        self._steps = steps
        self.reset = model.reset_metrics
        self.means = model.means

    def __call__(self, data: Any, count: int) -> dict[str, tf.Tensor]:
        """Execute steps; return the means of the last step on the first replica.

        Args:
          data: an iterator of batches for the replicas of this process.
          count: the number of steps.
        """
        return self._steps(data, tf.constant(count))
