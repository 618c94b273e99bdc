"""tuner_fn, the entry point of TFX's Tuner: KerasTuner on the search space of the model."""

from __future__ import annotations

import os
import sys
from typing import Any

import keras_tuner
from absl import logging
from keras_tuner.engine.trial import TrialStatus

from core.errors import cause
from trainer_module import models
from trainer_module.models.search_space import free_values
from trainer_module.run_fn import make_job
from trainer_module.settings import TrainingJob
from trainer_module.training import train_model

OBJECTIVE = keras_tuner.Objective("val_loss", "min")


class TrialTuner(keras_tuner.Tuner):
    """A Tuner whose trials are trainings of this package, on one device and without an export.

    KerasTuner's own trials build Keras 3 models; the models of this package are tf_keras models.
    """

    def __init__(self, job: TrainingJob, **kwargs: Any):
        self._job = job
        self._failure = "an eval loss that is not a number"
        super().__init__(**kwargs)

    def search(self, *args: Any, **kwargs: Any) -> None:
        """Run all trials.

        Raises:
          ValueError: every trial failed; the message contains the failure of the last one.
        """
        super().search(*args, **kwargs)
        if self.oracle.get_best_trials()[0].status != TrialStatus.COMPLETED:
            raise ValueError(f"every trial of the Tuner failed, the last one with {self._failure}")

    def run_trial(self, trial: Any, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Train with the values of a trial, and return the metrics of its last epoch.

        Args:
          trial: the trial of KerasTuner, which contains the values.
          args: unused arguments of `search`.
          kwargs: unused arguments of `search`.
        """
        folder = self.get_trial_dir(trial.trial_id)
        job = self._job.model_copy(
            update={
                "model_run_dir": os.path.join(folder, "run"),
                "checkpoint_dir": os.path.join(folder, "checkpoints"),
                "training": self._job.training.with_values(trial.hyperparameters.values),
            }
        )
        try:
            trained = train_model(job, None)
        except Exception as error:
            logging.warning("Trial %s failed", trial.trial_id, exc_info=True)
            self._failure = cause(error)
            raise
        trained.checkpoints.remove()
        return trained.metrics


def tuner_fn(fn_args: Any) -> Any:
    """Return TFX's TunerFnResult: a tuner of the hyperparameters that the settings do not have.

    Args:
      fn_args: TFX's FnArgs, see `run_fn.make_job`, with the folder `working_dir`.

    Raises:
      ValueError: the settings contain all values of the search space, or the model does not allow a
        hyperparameter.
      pydantic.ValidationError, tensorflow.errors.OpError: for the reasons in `run_fn.make_job`.
    """
    # Only TFX calls this function; the rest of the package does not depend on TFX.
    from tfx.components.tuner.component import TunerFnResult

    job = make_job(fn_args)
    training = job.training
    space = models.load(training.model, job.model_file).SEARCH_SPACE
    parameters = keras_tuner.HyperParameters()
    for name, values in free_values(space, training).items():
        if isinstance(values, list):
            parameters.Choice(name, values)
        else:
            low, high, sampling = values
            parameters.Float(name, low, high, sampling=sampling)
    oracle = keras_tuner.oracles.BayesianOptimizationOracle(
        objective=OBJECTIVE,
        max_trials=training.tuner_trials,
        max_consecutive_failed_trials=sys.maxsize,
        seed=training.seed,
        hyperparameters=parameters,
    )
    on_one_device = training.model_copy(
        update={"strategy": "one_device", "devices": None, "workers": 1}
    )
    tuner = TrialTuner(
        job.model_copy(update={"training": on_one_device, "base_model": None}),
        oracle=oracle,
        directory=fn_args.working_dir,
        project_name="trials",
    )
    return TunerFnResult(tuner=tuner, fit_kwargs={})
