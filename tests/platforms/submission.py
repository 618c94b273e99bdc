"""A compiled pipeline and one `amazon-reviews submit` of it, to servers on loopback."""

import json

import yaml

from pipeline.config import PipelineConfig
from platforms.submission import read_parameters, submit

SPEC = {
    "schemaVersion": "2.1.0",
    "sdkVersion": "tfx-1.21.0",
    "pipelineInfo": {"name": "amazon-reviews"},
    "components": {"ReviewExampleGen": {"executorLabel": "e"}, "Trainer": {"executorLabel": "e"}},
    "deploymentSpec": {"executors": {"e": {"container": {"image": "i", "command": ["c"]}}}},
    "root": {
        "dag": {
            "tasks": {
                name: {
                    "taskInfo": {"name": name},
                    "componentRef": {"name": name},
                    "cachingOptions": {"enableCache": cached},
                }
                for name, cached in (("ReviewExampleGen", False), ("Trainer", True))
            }
        },
        "inputDefinitions": {
            "parameters": {
                "epochs": {"parameterType": "NUMBER_INTEGER", "defaultValue": 2},
                "min_accuracy": {"parameterType": "NUMBER_DOUBLE", "defaultValue": 0.8},
                "strategy": {"parameterType": "STRING", "defaultValue": "auto"},
            }
        },
    },
}
PLATFORM = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": {"e": {}}}}}}
JOB = {
    "displayName": "amazon-reviews",
    "labels": {"tfx_runner": "kubeflow_v2"},
    "pipelineSpec": SPEC,
    "runtimeConfig": {"gcsOutputDirectory": "gs://elsewhere/root"},
}


class Submission:
    """One `amazon-reviews submit`: its settings, the server and the lines that it reported."""

    def __init__(self, target, server, folder):
        self.target, self.server = target, server
        self.lines = []
        self.settings = {
            "cluster": {"image": "registry/amazon-reviews:1"},
            "paths": {"root": "gs://bucket/root"},
            "data": {"input_base": "gs://bucket/data"},
            "kubeflow": {"endpoint": server.url, "namespace": "team-a", "service_account": "ksa"},
            "vertex": {"project": "my-project", "region": "us-central1"},
        }
        self.file = folder / {"kubeflow": "reviews.yaml", "vertex": "reviews.json"}[target]
        text = yaml.safe_dump_all([SPEC, PLATFORM]) if target == "kubeflow" else json.dumps(JOB)
        self.file.write_text(text)

    def __call__(self, *parameters, wait=False, target=None, report=None, patience=60.0, **changes):
        for key, value in changes.items():
            section, name = key.split("__") if "__" in key else (None, key)
            (self.settings[section] if section else self.settings)[name] = value
        return submit(
            PipelineConfig.model_validate(self.settings),
            target or self.target,
            self.file,
            read_parameters(parameters),
            wait,
            report or self.lines.append,
            poll_seconds=0.01,
            patience_seconds=patience,
        )

    @property
    def states(self):
        """The lines about states, without the time."""
        return [line[10:] for line in self.lines if line[2:3] == ":" and line[5:6] == ":"]


def kfp_task(name, state, error=None):
    task = {"run_id": "r-1", "task_id": name, "display_name": name, "state": state}
    return {**task, "error": {"code": 13, "message": error}} if error else task


def kfp_state(state, *tasks):
    return {"state": state, "run_details": {"task_details": list(tasks)}}


def vertex_state(state, *tasks, error=None):
    answer = {"state": f"PIPELINE_STATE_{state}", "jobDetail": {"taskDetails": list(tasks)}}
    return {**answer, "error": {"code": 9, "message": error}} if error else answer
