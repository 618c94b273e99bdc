"""`amazon-reviews kserve`."""

from __future__ import annotations

from cli.options import ConfigOption, ManifestOption, SetOption, make_app, write_manifest

app = make_app()


@app.command()
def kserve(
    output: ManifestOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the KServe InferenceService that serves the pushed models, for kubectl apply.

    Exit code 2: a setting is missing or wrong.
    """
    from pipeline.config import load_config
    from platforms.kubeflow.inference_service import render

    write_manifest(render(load_config(config, overrides or ())), output)
