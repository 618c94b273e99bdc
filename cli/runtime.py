"""`amazon-reviews runtime`."""

from __future__ import annotations

from cli.options import ConfigOption, ManifestOption, SetOption, make_app, write_manifest

app = make_app()


@app.command()
def runtime(
    output: ManifestOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the objects that trainings on a Kubernetes cluster require, for kubectl apply.

    These are the ClusterTrainingRuntime of TrainJobs, and the NetworkPolicy of training pods. An
    administrator applies them once. Exit code 2: a setting is wrong.
    """
    from pipeline.config import load_config
    from platforms.kubeflow.cluster_objects import render

    write_manifest(render(load_config(config, overrides or ())), output)
