"""A compiled pipeline and one `amazon-reviews submit` of it, to a server on loopback."""

import json

import yaml

from pipeline.config import PipelineConfig
from platforms import schedule
from platforms.submission import check_submission, submit

OPTIONS = r'{"patterns": {"all": "\u0024\u0024.csv"}, "max_examples": {}}'
TASKS = {"ReviewExampleGen": False, "Trainer": True}
SPEC = {
    "root": {
        "dag": {
            "tasks": {
                name: {
                    "cachingOptions": {"enableCache": cached},
                    "inputs": {"parameters": {"options": {"runtimeValue": {"constant": OPTIONS}}}},
                }
                for name, cached in TASKS.items()
            }
        }
    }
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

    def __init__(self, target, server, folder, endpoint=None):
        self.target, self.server = target, server
        self.lines = []
        self.settings = {
            "cluster": {"image": "registry/amazon-reviews:1"},
            "paths": {"root": "gs://bucket/root"},
            "data": {"input_base": "gs://bucket/data"},
            "kubeflow": {"endpoint": endpoint, "namespace": "team-a", "service_account": "ksa"},
            "vertex": {"project": "my-project", "region": "europe-west4"},
        }
        self.file = folder / {"kubeflow": "reviews.yaml", "vertex": "reviews.json"}[target]
        text = yaml.safe_dump_all([SPEC, PLATFORM]) if target == "kubeflow" else json.dumps(JOB)
        self.file.write_text(text)

    def config(self, **changes):
        """Return the settings with changes such as `vertex__network` or `cache`."""
        for key, value in changes.items():
            section, _, name = key.rpartition("__")
            (self.settings[section] if section else self.settings)[name] = value
        return PipelineConfig.model_validate(self.settings)

    def __call__(self, *parameters, wait=False, report=None, cache=False, **changes):
        config = self.config(cache=cache, **changes)
        check_submission(config, self.target)
        return submit(
            config,
            self.target,
            self.file,
            dict(each.split("=") for each in parameters),
            wait,
            report or self.lines.append,
        )

    def schedule(self, *parameters, cron="0 3 * * *", **changes):
        """Create the schedule of the pipeline."""
        config = self.config(**changes)
        check_submission(config, self.target)
        values = dict(each.split("=", 1) for each in parameters)
        schedule.create(config, self.target, self.file, values, cron, self.lines.append)

    def unschedule(self):
        """Remove the schedule of the pipeline."""
        schedule.remove(self.config(), self.target, self.lines.append)

    @property
    def states(self):
        """The lines about states, without the time."""
        return [line[10:] for line in self.lines if line[2:3] == ":" and line[5:6] == ":"]
