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

    def __init__(self, spec, folder, values):
        self._spec = spec
        self._folder = Path(folder)
        definitions = spec["root"]["inputDefinitions"]["parameters"]
        self._values = {name: each["defaultValue"] for name, each in definitions.items()} | values

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
        outputs = component.get("outputDefinitions", {}).get("artifacts", {})
        inputs = {
            key: {"artifacts": [{"name": key, "uri": self._uri(each["taskOutputArtifact"])}]}
            for key, each in task.get("inputs", {}).get("artifacts", {}).items()
        }
        parameters = task.get("inputs", {}).get("parameters", {})
        executor_input = {
            "inputs": {
                "artifacts": inputs,
                "parameterValues": {key: self._value(each) for key, each in parameters.items()},
            },
            "outputs": {
                "artifacts": {
                    key: {
                        "artifacts": [
                            {
                                "name": key,
                                "uri": str(self._folder / name / key),
                                "type": each["artifactType"],
                            }
                        ]
                    }
                    for key, each in outputs.items()
                },
                "outputFile": str(self._folder / name / "executor_output.json"),
            },
        }
        (self._folder / name).mkdir(parents=True)
        arguments = executor["container"]["args"]
        text = json.dumps(executor_input)
        os.environ |= {each["name"]: each["value"] for each in executor["container"].get("env", [])}
        code = main([text if word == "{{$}}" else word for word in arguments])
        print(f"{name}: exit code {code}", flush=True)
        if code:
            sys.exit(code)

    def _uri(self, output):
        return str(self._folder / output["producerTask"] / output["outputArtifactKey"])

    def _value(self, given):
        if "componentInputParameter" in given:
            return self._values[given["componentInputParameter"]]
        return given["runtimeValue"]["constant"]


if __name__ == "__main__":
    file, folder, *overrides = sys.argv[1:]
    document = next(yaml.safe_load_all(Path(file).read_text()))
    pairs = (override.split("=", 1) for override in overrides)
    Launcher(document, folder, {name: json.loads(text) for name, text in pairs}).run()
