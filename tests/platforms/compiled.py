"""Settings that a target accepts, and compiled pipelines, each compiled once."""

import functools
import tempfile
from pathlib import Path

import yaml

from cli.compile import compile_to
from pipeline.config import load_config
from platforms.clusters import COMPILED_FILES

PROJECT = "vertex={project: my-project, region: europe-west4}"
IMAGE = "example/amazon-reviews:1"
PLACES = (
    "paths.root=gs://bucket/root,paths.serving=gs://bucket/serving,data.input_base=gs://bucket/raw"
)
REQUIRED = {
    "vertex": f"{PLACES},cluster.image={IMAGE},{PROJECT}",
    "kubeflow": f"{PLACES},cluster.image={IMAGE}",
}


def settings(target, preset="sample", more=""):
    """Return a preset with the settings that a target requires in addition."""
    overrides = ",".join(part for part in (REQUIRED.get(target), more) if part)
    return load_config(preset, [overrides] if overrides else [], environ={})


class Compiled:
    """A compiled file, read back."""

    def __init__(self, text, target):
        documents = list(yaml.safe_load_all(text))
        self.text = text
        self.job = documents[0] if target == "vertex" else None
        self.spec = self.job["pipelineSpec"] if self.job else documents[0]
        self.platform = documents[1] if len(documents) > 1 else None
        self.tasks = self.spec["root"]["dag"]["tasks"]
        self.executors = self.spec["deploymentSpec"]["executors"]

    def container(self, component):
        return self.executors[f"{component}_executor"]["container"]

    def constant(self, component, key):
        return self.tasks[component]["inputs"]["parameters"][key]["runtimeValue"]["constant"]


@functools.cache
def compiled(target, preset="sample", more=""):
    """Compile a preset with further overrides; the result is shared, so nobody changes it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pipeline")  # The target sets the format, not the name.
        compile_to(file, settings(target, preset, more), target)
        text = file.read_text()
    assert text.startswith(
        COMPILED_FILES[target].begins
    )  # so that a second compilation may replace it
    return Compiled(text, target)
