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
    """Write what an administrator of a Kubernetes cluster applies once, for kubectl apply.

    These are the ClusterTrainingRuntime of TrainJobs, and the NetworkPolicy of training pods.
    Exit code 2: a setting is wrong.
    """
    from pipeline.config import load_config
    from platforms.kubeflow.cluster_objects import render

    write_manifest(render(load_config(config, overrides or ())), output)
