"""tuner_fn, the entry point of TFX's Tuner: KerasTuner on the search space of the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import keras_tuner

from trainer_module import models
from trainer_module.run_fn import make_job
from trainer_module.settings import TrainingJob
from trainer_module.training import fit

OBJECTIVE = keras_tuner.Objective("val_loss", "min")
_ONE_DEVICE = {"strategy": "one_device", "devices": None, "workers": 1}


class TrialTuner(keras_tuner.Tuner):
    """A Tuner whose trials are trainings of this package, on one device and without an export.

    KerasTuner's own trials build Keras 3 models; the models of this package are tf_keras models.
    """

    def __init__(self, job: TrainingJob, **kwargs: Any):
        self._job = job
        super().__init__(**kwargs)

    def run_trial(self, trial: Any, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Train with the values of the trial, and return the metrics of its last epoch."""
        folder = self.get_trial_dir(trial.trial_id)
        job = self._job.model_copy(
            update={
                "model_run_dir": os.path.join(folder, "run"),
                "checkpoint_dir": os.path.join(folder, "checkpoints"),
                "training": self._job.training.with_values(trial.hyperparameters.values),
            }
        )
        trained = fit(job, None)
        trained.checkpoints.remove()
        return trained.metrics


def tuner_fn(fn_args: Any) -> Any:
    """Return the TunerFnResult for TFX's FnArgs."""
    # Only TFX calls this function; the rest of the package does not depend on TFX.
    from tfx.components.tuner.component import TunerFnResult

    job = make_job(fn_args)
    oracle = keras_tuner.oracles.BayesianOptimizationOracle(
        objective=OBJECTIVE,
        max_trials=job.training.tuner_trials,
        seed=job.training.seed,
        hyperparameters=search_space(models.load(job.training.model).SEARCH_SPACE),
    )
    tuner = TrialTuner(
        job.model_copy(
            update={"training": job.training.model_copy(update=_ONE_DEVICE), "base_model": None}
        ),
        oracle=oracle,
        directory=fn_args.working_dir,
        project_name="trials",
    )
    return TunerFnResult(tuner=tuner, fit_kwargs={})


def search_space(space: Mapping[str, Any]) -> keras_tuner.HyperParameters:
    """Convert a model's SEARCH_SPACE for KerasTuner.

    A list becomes a choice, (low, high, sampling) a range of floats.
    """
    parameters = keras_tuner.HyperParameters()
    for name, values in space.items():
        if isinstance(values, list):
            parameters.Choice(name, values)
        else:
            low, high, sampling = values
            parameters.Float(name, low, high, sampling=sampling)
    return parameters
