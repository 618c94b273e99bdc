"""`amazon-reviews flink`."""

from __future__ import annotations

from cli.options import ConfigOption, ManifestOption, SetOption, make_app, write_manifest

app = make_app()


@app.command()
def flink(
    output: ManifestOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the objects of a Flink cluster for `beam.runner: flink`, for kubectl apply.

    These are a FlinkDeployment of the Flink Kubernetes Operator with Python workers, the job server
    of Beam, and NetworkPolicies. The file begins with the settings of a pipeline that uses them.
    Exit code 2: a setting is missing or wrong.
    """
    from pipeline.config import load_config
    from platforms.kubeflow.flink.manifests import render

    write_manifest(render(load_config(config, overrides or ())), output)
