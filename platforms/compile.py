"""The compiler of the pipeline: PipelineJob JSON for Vertex AI, PipelineSpec YAML for Kubeflow."""

from __future__ import annotations

import json
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
from pipeline.cluster_settings import Volume
from pipeline.config import PipelineConfig
from pipeline.nodes import EXAMPLE_GEN, PUSHER, REPORT, SERVED_MODEL, WARM_START
from pipeline.pipeline import create_pipeline, make_tracking
from pipeline.project import component_files
from platforms.clusters import ClusterTarget
from platforms.compiled import Kubeflow, Vertex
from platforms.pipeline_spec import escape, escape_parameters, tasks_of
from platforms.training_jobs.executor import TrainingJobTrainer

ENTRYPOINT = ["python", "-m", "platforms.entrypoint"]
_NEVER_CACHED = {
    # The result of the Pusher depends on the served model, which a rollback changes.
    "vertex": (EXAMPLE_GEN, SERVED_MODEL, WARM_START, PUSHER),
    "kubeflow": (EXAMPLE_GEN, SERVED_MODEL, WARM_START),
}
"""Platform -> nodes whose outputs depend on more than the parameters and artifacts that they read.
A submission enables the cache for ReviewExampleGen again, see `platforms.input_cache`."""
_MAX_PARAMETERS = 112 * 2**10
"""Greatest size of the parameters of a step in bytes. The launcher passes them in one argument of
the container, in which Linux accepts 128 KiB. The rest is for the input artifacts."""


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
    runner = Runner(config, target, output)
    platform = Vertex(config) if target == "vertex" else Kubeflow(config)
    runner.run(create_pipeline(config, platform))


class Runner(kubeflow_v2_dag_runner.KubeflowV2DagRunner):
    """TFX's compiling runner, which also writes the parts of the file that TFX omits.

    Args:
      config: the settings of the pipeline.
      target: the platform that runs the compiled pipeline.
      output: the file; its folder must exist.

    Raises:
      ConfigError: the file cannot be written.
    """

    def __init__(self, config: PipelineConfig, target: ClusterTarget, output: Path):
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
        self._settings, self._target = config, target

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
        for name in _NEVER_CACHED[self._target]:
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
        if tracked := make_tracking(self._settings, self._target):
            tasks[REPORT]["cachingOptions"] = {}
            for executor in executors.values():
                if "container" in executor:
                    _add_variable(executor, TRACKING, json.dumps(tracked))
        for name, task in tasks.items():
            escape_parameters(name, task)
        _add_defaults(spec, pipeline)
        _check_size(tasks, self._settings)
        _use_system_types(spec)
        text = json.dumps(job, indent=2, sort_keys=True) + "\n"
        if self._target == "kubeflow":
            volume = self._settings.kubeflow.volume
            documents = [spec, _platform_spec(spec, volume)] if volume else [spec]
            text = yaml.safe_dump_all(documents, sort_keys=True)
        # The TFX command line changes both attributes before a run.
        write_output(Path(self._output_dir, self._output_filename), text)
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


def _check_size(tasks: dict[str, Any], config: PipelineConfig) -> None:
    """Check that the parameters of each step fit into one argument of its container.

    Raises:
      ConfigError: the parameters of a step are too long, for example because of many labels.
    """
    for name, task in tasks.items():
        parameters = task.get("inputs", {}).get("parameters", {})
        size = len(json.dumps(parameters, ensure_ascii=False).encode())
        if size > _MAX_PARAMETERS:
            sizes = {
                f"{section}.{key}": len(json.dumps(value))
                for section, values in config.model_dump().items()
                if isinstance(values, dict)
                for key, value in values.items()
            }
            longest = max(sizes, key=lambda key: sizes[key])
            raise ConfigError(
                f"{longest}: with it the settings for the step {name} have {size:,} bytes, and a "
                f"container accepts {_MAX_PARAMETERS:,} in one argument; shorten the value"
            )


def _use_system_types(spec: dict[str, Any]) -> None:
    """Declare some outputs with the types of Kubeflow, so that the platforms display them."""
    for component in spec["components"].values():
        for output in component.get("outputDefinitions", {}).get("artifacts", {}).values():
            declared = yaml.safe_load(output["artifactType"].get("instanceSchema", "")) or {}
            if declared.get("title") in SYSTEM_TYPES:
                title = SYSTEM_TYPES[declared["title"]]
                output["artifactType"] = {"schemaTitle": title, "schemaVersion": "0.0.1"}


def _platform_spec(spec: dict[str, Any], volume: Volume) -> dict[str, Any]:
    """Return the YAML document for Kubernetes, which mounts the volume in every step."""
    mount = {
        "constant": volume.claim,
        "pvcNameParameter": {"runtimeValue": {"constant": volume.claim}},
        "mountPath": volume.mount,
    }
    executors = {name: {"pvcMount": [mount]} for name in spec["deploymentSpec"]["executors"]}
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
