"""The pipeline, compiled: PipelineJob JSON for Vertex AI, PipelineSpec YAML for Kubeflow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner
from tfx.orchestration.pipeline import Pipeline

from pipeline.cluster_settings import Volume
from pipeline.config import PipelineConfig
from pipeline.pipeline import create_pipeline
from platforms.checks import ClusterTarget
from platforms.targets import check_target, make_platform

ENTRYPOINT = ["python", "-m", "platforms.entrypoint"]
DRIVER = ["python", "-m", "platforms.driver"]
_NEVER_CACHED = {
    "vertex": (),
    # What these two read can change while nothing that Kubeflow compares does: it runs no
    # ExampleGen driver, which would fingerprint the files, and no Resolver.
    "kubeflow": ("ReviewExampleGen", "LatestBlessedModel", "WarmStartModel"),
}


def compile_pipeline(config: PipelineConfig, target: ClusterTarget, output: Path) -> None:
    """Compiles the pipeline into `output`, with schema 2.1.

    A name that ends in .yaml gets a PipelineSpec, any other a PipelineJob.

    Raises:
      ConfigError: a setting does not fit the target.
    """
    check_target(config, target)
    runner = Runner(config, target, output)
    runner.run(create_pipeline(config, make_platform(config, target)))


class Runner(kubeflow_v2_dag_runner.KubeflowV2DagRunner):
    """TFX's runner, which compiles; what it leaves out is added to its file."""

    def __init__(self, config: PipelineConfig, target: ClusterTarget, output: Path):
        super().__init__(
            kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
                default_image=config.cluster.image,
                default_commands=ENTRYPOINT,
                # The only schema that open-source Kubeflow takes, and the one that tells our
                # entry point the types of a step's inputs.
                use_pipeline_spec_2_1=True,
            ),
            output_dir=str(output.parent.absolute()),
            output_filename=output.name,
        )
        self._never_cached = _NEVER_CACHED[target]
        self._volume = config.kubeflow.volume if target == "kubeflow" else None

    def run(self, pipeline: Pipeline, **arguments: Any) -> dict[str, Any]:
        """Compiles `pipeline` and writes the file; returns the PipelineJob."""
        job = super().run(pipeline, **{**arguments, "write_out": False})
        spec = job["pipelineSpec"]
        tasks = spec["root"]["dag"]["tasks"]
        for name in self._never_cached:
            if name in tasks:
                tasks[name]["cachingOptions"] = {}
        _give_defaults(spec, pipeline)
        _give_driver_to_example_gen(spec)
        self._write(job)
        return job

    def _write(self, job: dict[str, Any]) -> None:
        # Read only now: the TFX CLI changes both before a run.
        path = Path(self._output_dir) / self._output_filename
        if path.suffix in (".yaml", ".yml"):
            documents = [job["pipelineSpec"]]
            if self._volume:
                documents.append(_platform_spec(job["pipelineSpec"], self._volume))
            text = yaml.safe_dump_all(documents, sort_keys=True)
        else:
            text = json.dumps(job, indent=2, sort_keys=True) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nobody finds half a file, whenever this is ended.
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)


def _give_defaults(spec: dict[str, Any], pipeline: Pipeline) -> None:
    """TFX forgets the defaults of runtime parameters with schema 2.1."""
    parameters = spec["root"]["inputDefinitions"]["parameters"]
    for component in pipeline.components:
        for value in component.exec_properties.values():
            if isinstance(value, RuntimeParameter):
                parameters[value.name] |= {"defaultValue": value.default, "isOptional": True}


def _give_driver_to_example_gen(spec: dict[str, Any]) -> None:
    """Add our driver, which TFX compiles for subclasses of its own ExampleGens only."""
    container = spec["deploymentSpec"]["executors"]["ReviewExampleGen_executor"]["container"]
    arguments = container["args"]
    at = arguments.index("--executor_class_path")
    # A driver takes the arguments of the executor but its class.
    driver = {"command": DRIVER, "args": arguments[:at] + arguments[at + 2 :]}
    container["lifecycle"] = {"preCacheCheck": driver}


def _platform_spec(spec: dict[str, Any], volume: Volume) -> dict[str, Any]:
    """The second document of the YAML: every step mounts the volume."""
    mount = {
        "constant": volume.claim,
        "pvcNameParameter": {"runtimeValue": {"constant": volume.claim}},
        "mountPath": volume.mount,
    }
    executors = {name: {"pvcMount": [mount]} for name in spec["deploymentSpec"]["executors"]}
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
