"""The parameters of a run: settings that a submission of the compiled pipeline can override.

`amazon-reviews submit` checks them. A run that is started on a page of Kubeflow Pipelines has no
such check, and the server accepts `epochs` 2.5. The pipeline for Kubeflow therefore passes all
parameters, and the settings that it was compiled with, to its first step, whose container checks
them before it reads anything. On Vertex AI that would make each change of `epochs` a cache miss of
the first step, so there the step that uses a parameter checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.properties import RUN_PARAMETERS
from components.review_example_gen.inputs import SAMPLE
from core.errors import ConfigError
from core.settings import with_parameters
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget
from platforms.targets import check_target

FIRST_STEP = "ReviewExampleGen"
SETTINGS_KEY = "compiled_settings"
"""The input of the first step with the settings; its other inputs have the names of parameters."""


def check_parameters(
    config: PipelineConfig, target: ClusterTarget, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Check the parameters of a run like the settings that they override.

    The pipeline was compiled with `config`; a number may be text.

    Returns:
      The parameters in the types of the settings.

    Raises:
      ConfigError, InputError: there is no such parameter, a value is not allowed, the target does
        not support it, or it requires another compiled pipeline.
    """
    of_section: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if name not in RUN_PARAMETERS:
            known = ", ".join(RUN_PARAMETERS)
            raise ConfigError(
                f"parameter {name}: the pipeline has no such parameter; known are {known}"
            )
        of_section.setdefault(RUN_PARAMETERS[name], {})[name] = value
    if not given:
        return {}
    # This import of TFX takes seconds, and most runs are submitted without a parameter.
    from components.trainer import training_of_run

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
    return {name: getattr(changed[RUN_PARAMETERS[name]], name) for name in given}


def _of_parameter(message: str) -> str:
    for name, section in RUN_PARAMETERS.items():
        if message.startswith(f"{section}.{name}:"):
            return f"parameter {message.removeprefix(f'{section}.')}"
    return message


def add_check(spec: dict[str, Any], config: PipelineConfig) -> None:
    """Pass all parameters of a run to the first step of a PipelineSpec for Kubeflow."""
    settings = config.model_dump_json(exclude_defaults=True)
    inputs, definitions = _first_inputs(spec)
    inputs[SETTINGS_KEY] = {"runtimeValue": {"constant": settings}}
    definitions[SETTINGS_KEY] = {"parameterType": "STRING"}
    for name, definition in spec["root"]["inputDefinitions"]["parameters"].items():
        inputs[name] = {"componentInputParameter": name}
        definitions[name] = {"parameterType": definition["parameterType"]}


def remove_check(spec: dict[str, Any]) -> None:
    """Remove what `add_check` added, so that only its own inputs are in the step's cache key."""
    added = {SETTINGS_KEY, *RUN_PARAMETERS} - {"input_base"}
    for names in _first_inputs(spec):
        for name in added & set(names):
            del names[name]


def check_run(executor_input: dict[str, Any]) -> None:
    """Check the parameters of the run in the container of the first step, and remove them.

    Raises:
      ConfigError, InputError: see `check_parameters`.
      ValidationError: the pipeline was compiled by other code.
    """
    values = executor_input.get("inputs", {}).get("parameterValues", {})
    if SETTINGS_KEY not in values:
        return
    config = PipelineConfig.model_validate_json(values.pop(SETTINGS_KEY))
    given = {name: values.pop(name) for name in RUN_PARAMETERS if name != "input_base"}
    if values["input_base"] != (config.data.input_base or SAMPLE):
        given["input_base"] = values["input_base"]
    check_parameters(config, "kubeflow", given)


def _first_inputs(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the inputs of the first step, and their definitions."""
    inputs = spec["root"]["dag"]["tasks"][FIRST_STEP]["inputs"]["parameters"]
    component = spec["components"][FIRST_STEP].get("inputDefinitions", {})
    return inputs, component.get("parameters", {})
