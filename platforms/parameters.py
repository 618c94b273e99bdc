"""The parameters of a run: settings that a submission of the compiled pipeline can override."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.properties import RUN_PARAMETERS
from core.errors import ConfigError
from core.settings import with_parameters
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget
from platforms.targets import check_target


def check_parameters(
    config: PipelineConfig, target: ClusterTarget, given: Mapping[str, Any]
) -> None:
    """Check the parameters of a run like the settings that they override.

    Args:
      config: the settings that the pipeline was compiled with.
      target: the platform that it was compiled for.
      given: parameter -> value, for the values that differ from `config`.

    Raises:
      ConfigError, InputError: a value is not allowed, the target does not support it, or it
        requires another compiled pipeline.
    """
    # This import of TFX takes seconds, and most runs are submitted without a parameter.
    from components.trainer import training_of_run

    of_section: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        of_section.setdefault(RUN_PARAMETERS[name], {})[name] = value
    changed = {
        section: (training_of_run if section == "training" else with_parameters)(
            getattr(config, section), values
        )
        for section, values in of_section.items()
    }
    try:
        check_target(config.model_copy(update=changed), target)
    except ConfigError as error:
        raise ConfigError(_of_parameter(str(error))) from None


def _of_parameter(message: str) -> str:
    for name, section in RUN_PARAMETERS.items():
        if message.startswith(f"{section}.{name}:"):
            return f"parameter {message.removeprefix(f'{section}.')}"
    return message
