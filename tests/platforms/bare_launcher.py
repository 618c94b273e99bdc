"""A launcher of compiled pipelines that passes artifacts without types and without properties.

usage: bare_launcher.py PIPELINE.yaml FOLDER [NAME=VALUE ...]

Each step gets what any launcher knows: names and URIs of artifacts, and parameters. The steps run
one after the other in this process, because imports take longer than most steps.
"""

import json
import os
import sys
from pathlib import Path

import yaml

from platforms.entrypoint import main


class Launcher:
    """Runs the tasks of a PipelineSpec."""

    def __init__(self, spec, folder, parameters):
        self._spec, self._folder, self._parameters = spec, Path(folder), parameters

    def run(self):
        waiting = dict(self._spec["root"]["dag"]["tasks"])
        while waiting:
            ready = [name for name, task in waiting.items() if not self._needs(task) & set(waiting)]
            self._run(ready[0], waiting.pop(ready[0]))

    def _needs(self, task):
        artifacts = task.get("inputs", {}).get("artifacts", {}).values()
        producers = {each["taskOutputArtifact"]["producerTask"] for each in artifacts}
        return producers | set(task.get("dependentTasks", []))

    def _run(self, name, task):
        component = self._spec["components"][task["componentRef"]["name"]]
        executor = self._spec["deploymentSpec"]["executors"][component["executorLabel"]]
        given = task.get("inputs", {})
        inputs = {}
        for key, each in given.get("artifacts", {}).items():
            output = each["taskOutputArtifact"]
            inputs[key] = self._artifact(key, output["producerTask"], output["outputArtifactKey"])
        outputs = component.get("outputDefinitions", {}).get("artifacts", {})
        parameters = given.get("parameters", {})
        executor_input = {
            "inputs": {
                "artifacts": inputs,
                "parameterValues": {key: self._value(each) for key, each in parameters.items()},
            },
            "outputs": {
                "artifacts": {
                    key: self._artifact(key, name, key, type=each["artifactType"])
                    for key, each in outputs.items()
                },
                "outputFile": str(self._folder / name / "executor_output.json"),
            },
        }
        (self._folder / name).mkdir(parents=True)
        text = json.dumps(executor_input)
        container = executor["container"]
        os.environ |= {each["name"]: each["value"] for each in container.get("env", [])}
        code = main([text if word == "{{$}}" else word for word in container["args"]])
        print(f"{name}: exit code {code}", flush=True)
        if code:
            sys.exit(code)

    def _artifact(self, name, task, output, **more):
        return {"artifacts": [{"name": name, "uri": str(self._folder / task / output), **more}]}

    def _value(self, given):
        if "componentInputParameter" in given:
            name = given["componentInputParameter"]
            definitions = self._spec["root"]["inputDefinitions"]["parameters"]
            return self._parameters.get(name, definitions[name]["defaultValue"])
        return given["runtimeValue"]["constant"]


if __name__ == "__main__":
    file, folder, *given = sys.argv[1:]
    values = {name: json.loads(text) for name, text in (each.split("=", 1) for each in given)}
    Launcher(next(yaml.safe_load_all(Path(file).read_text())), folder, values).run()
