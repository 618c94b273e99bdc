"""The check of the Trainer's parameters of a run, at the submission and again in the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import InputError
from core.settings import with_parameters
from trainer_module.cluster.resources import count_processes
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import Training


def training_of_run(compiled: Training, given: Mapping[str, Any]) -> Training:
    """Return the settings of a training with the run's `epochs` and `strategy`.

    Args:
      compiled: the settings that the pipeline was compiled with.
      given: parameter -> value.

    Raises:
      InputError: a value is not allowed, or requires other processes than those of the compiled
        pipeline.
    """
    training = with_parameters(compiled, given)
    before, after = _in_words(count_processes(compiled)), _in_words(count_processes(training))
    if before != after:
        raise InputError(
            f"parameter strategy: {training.strategy} trains in {after}, and the pipeline was "
            f"compiled for {before}; set training.strategy: {training.strategy} in the settings "
            "and compile again"
        )
    return training


_NAMES = {CHIEF: "chief", WORKER: "worker", PS: "parameter server"}


def _in_words(counts: Mapping[str, int]) -> str:
    """Return `1 chief and 2 workers` for `{"chief": 1, "worker": 2}`."""
    if sum(counts.values()) == 1:
        return "one process"
    *first, last = [f"{count} {_NAMES[kind]}{'s'[: count > 1]}" for kind, count in counts.items()]
    return " and ".join(filter(None, [", ".join(first), last]))
