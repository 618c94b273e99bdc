"""The compiler of the pipeline: PipelineJob JSON for Vertex AI, PipelineSpec YAML for Kubeflow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner
from tfx.orchestration.pipeline import Pipeline

from components.artifacts import SYSTEM_TYPES
from components.properties import COMPONENT_FILE, TRACKING
from core.errors import ConfigError
from core.files import output_path, write_output
from pipeline.config import PipelineConfig
from pipeline.nodes import REPORT
from pipeline.pipeline import create_pipeline, make_tracking
from pipeline.project import component_files
from platforms.clusters import ClusterTarget
from platforms.compiled import PLATFORMS, Compiled
from platforms.pipeline_spec import escape, escape_parameters, tasks_of
from platforms.training_jobs.executor import TrainingJobTrainer

ENTRYPOINT = ["python", "-m", "platforms.entrypoint"]
_MAX_PARAMETERS = 104 * 2**10
"""Greatest size of the parameters of a step in bytes. A pod gets them in one argument or variable,
in which Linux accepts 128 KiB. The rest is for the input artifacts: the RunReport of the sample has
17 KB of them on Kubeflow Pipelines 2.14."""


def compile_pipeline(config: PipelineConfig, target: ClusterTarget, output: Path) -> None:
    """Compile the pipeline into a file.

    Args:
      config: the settings, which `check_target` and `check_model` have checked.
      target: the platform that runs the compiled pipeline.
      output: the file; its folder must exist.

    Raises:
      ConfigError: the file cannot be written, `tracking.mlflow` is set and the client of MLflow is
        not installed, or the settings are too long for a step, or have characters that Kubernetes
        replaces.
    """
    platform = PLATFORMS[target](config)
    runner = Runner(config, platform, output)
    runner.run(create_pipeline(config, platform))


class Runner(kubeflow_v2_dag_runner.KubeflowV2DagRunner):
    """TFX's compiling runner, which also writes the parts of the file that TFX omits.

    Args:
      config: the settings of the pipeline.
      platform: the platform that runs the compiled pipeline.
      output: the file; its folder must exist.

    Raises:
      ConfigError: the file cannot be written.
    """

    def __init__(self, config: PipelineConfig, platform: Compiled, output: Path):
        path = Path(output_path(output))
        super().__init__(
            kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
                default_image=config.cluster.image,
                default_commands=ENTRYPOINT,
                # Open-source Kubeflow accepts only this schema. The schema also contains the types
                # of a step's inputs, which our entry point requires.
                use_pipeline_spec_2_1=True,
            ),
            output_dir=str(path.parent),
            output_filename=path.name,
        )
        self._settings, self._platform = config, platform

    def run(self, pipeline: Pipeline, **arguments: Any) -> dict[str, Any]:
        """Compile `pipeline` and write the file; return the PipelineJob as a JSON object.

        Args:
          pipeline: the pipeline.
          **arguments: those of TFX's runner, except `write_out`.

        Raises:
          ConfigError: the file cannot be written, or the settings are too long for a step, or have
            characters that Kubernetes replaces.
        """
        job = super().run(pipeline, **{**arguments, "write_out": False})
        spec = job["pipelineSpec"]
        tasks = tasks_of(spec)
        for name in self._platform.never_cached:
            if name in tasks:
                tasks[name]["cachingOptions"] = {}
        executors = spec["deploymentSpec"]["executors"]
        for file in component_files(self._settings.project):
            executor = executors[f"{file.name}_executor"]
            _add_variable(executor, COMPONENT_FILE, file.model_dump_json())
        for component in pipeline.components:
            if isinstance(component, TrainingJobTrainer):
                executor = executors[f"{component.id}_executor"]
                for name, value in component.environment.items():
                    _add_variable(executor, name, value)
        if tracked := make_tracking(self._settings, self._platform.target):
            tasks[REPORT]["cachingOptions"] = {}
            for executor in executors.values():
                if "container" in executor:
                    _add_variable(executor, TRACKING, tracked.to_json())
        for name, task in tasks.items():
            escape_parameters(name, task)
        _add_defaults(spec, pipeline)
        _check_size(self._platform.parameter_sizes(spec), self._settings)
        _use_system_types(spec)
        # The TFX command line changes both attributes before a run.
        output = Path(self._output_dir, self._output_filename)
        write_output(output, self._platform.content(job))
        return job


def _add_variable(executor: dict[str, Any], name: str, value: str) -> None:
    """Add an environment variable to the container of an executor.

    Args:
      executor: the JSON of an executor with a container, which is changed.
      name: the name of the variable.
      value: its value, which is JSON.
    """
    variable = {"name": name, "value": escape(value)}
    executor["container"].setdefault("env", []).append(variable)


def _add_defaults(spec: dict[str, Any], pipeline: Pipeline) -> None:
    """Add the defaults of runtime parameters, which TFX omits with schema 2.1."""
    parameters = spec["root"]["inputDefinitions"]["parameters"]
    for component in pipeline.components:
        for value in component.exec_properties.values():
            if isinstance(value, RuntimeParameter):
                parameters[value.name] |= {"defaultValue": value.default, "isOptional": True}


def _check_size(sizes: Mapping[str, int], config: PipelineConfig) -> None:
    """Check that the parameters fit into an argument or a variable of a container.

    Args:
      sizes: the result of `Compiled.parameter_sizes`.
      config: the settings of the pipeline.

    Raises:
      ConfigError: the parameters of a step, or of all steps together, are too long, for example
        because of many labels.
    """
    name = max(sizes, key=lambda key: sizes[key])
    if sizes[name] > _MAX_PARAMETERS:
        raise ConfigError(
            f"{_longest_setting(config)}: with it the settings for {name} have {sizes[name]:,} "
            f"bytes, and a container accepts {_MAX_PARAMETERS:,} of them; shorten the value"
        )


def _longest_setting(config: PipelineConfig) -> str:
    """Return the key of the longest setting."""
    sizes = {
        f"{section}.{key}": len(json.dumps(value))
        for section, values in config.model_dump().items()
        if isinstance(values, dict)
        for key, value in values.items()
    }
    return max(sizes, key=lambda key: sizes[key])


def _use_system_types(spec: dict[str, Any]) -> None:
    """Declare some outputs with the types of Kubeflow, so that the platforms display them."""
    for component in spec["components"].values():
        for output in component.get("outputDefinitions", {}).get("artifacts", {}).values():
            declared = yaml.safe_load(output["artifactType"].get("instanceSchema", "")) or {}
            if declared.get("title") in SYSTEM_TYPES:
                title = SYSTEM_TYPES[declared["title"]]
                output["artifactType"] = {"schemaTitle": title, "schemaVersion": "0.0.1"}
