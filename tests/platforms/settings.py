"""The settings that a target requires in addition to a preset, as a value of PIPELINE_SET."""

from pipeline.config import load_config

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
    overrides = ",".join(part for part in (REQUIRED[target], more) if part)
    return load_config(preset, environ={"PIPELINE_SET": overrides})
