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
_MAX_PARAMETERS = 104 * 2**10
"""Greatest size of the parameters of a step in bytes. A pod gets them in one argument or variable,
in which Linux accepts 128 KiB. The rest is for the input artifacts: the RunReport of the sample has
17 KB of them on Kubeflow Pipelines 2.14."""
_ENCODED = {"vertex": 1, "kubeflow": 3}
"""Platform -> how often the parameters of a step are encoded as JSON. Argo Workflows passes the
template of a pod in a variable, which contains the JSON of the pod, and in it that of the
arguments. With a longer variable it requires a permission that Kubeflow Pipelines does not give."""


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
                    _add_variable(executor, TRACKING, tracked.to_json())
        for name, task in tasks.items():
            escape_parameters(name, task)
        _add_defaults(spec, pipeline)
        _check_size(spec, self._settings, self._target)
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


def _check_size(spec: dict[str, Any], config: PipelineConfig, target: ClusterTarget) -> None:
    """Check that the parameters fit into an argument or a variable of a container.

    Raises:
      ConfigError: the parameters of a step, or of all steps together, are too long, for example
        because of many labels.
    """
    sizes = {
        f"the step {name}": _encoded_size(
            task.get("inputs", {}).get("parameters", {}), _ENCODED[target]
        )
        for name, task in tasks_of(spec).items()
    }
    if target == "kubeflow":
        # The first pod of a run gets the tasks of all steps.
        sizes["all steps"] = _encoded_size(spec["root"], 2)
    name = max(sizes, key=lambda key: sizes[key])
    if sizes[name] > _MAX_PARAMETERS:
        raise ConfigError(
            f"{_longest_setting(config)}: with it the settings for {name} have {sizes[name]:,} "
            f"bytes, and a container accepts {_MAX_PARAMETERS:,} of them; shorten the value"
        )


def _encoded_size(value: Any, times: int) -> int:
    """Return the size of a value in bytes after it was encoded as JSON several times."""
    for _ in range(times):
        value = json.dumps(value, ensure_ascii=False)
    return len(value.encode())


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


def _platform_spec(spec: dict[str, Any], volume: Volume) -> dict[str, Any]:
    """Return the YAML document for Kubernetes, which mounts the volume in every step."""
    mount = {
        "constant": volume.claim,
        "pvcNameParameter": {"runtimeValue": {"constant": volume.claim}},
        "mountPath": volume.mount,
    }
    executors = {name: {"pvcMount": [mount]} for name in spec["deploymentSpec"]["executors"]}
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
