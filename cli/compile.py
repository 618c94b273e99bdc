"""`amazon-reviews compile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ConfigOption, SetOption, TargetOption, make_app, settings_options, writing

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig
    from platforms.checks import ClusterTarget

SUFFIXES = {"vertex": ".json", "kubeflow": ".yaml"}

app = make_app()


@app.command(epilog="Example: amazon-reviews compile --target kubeflow --config mine.yaml")
def compile(
    target: TargetOption,
    output: Annotated[
        Path | None,
        typer.Option(help="Output file \\[default: NAME.json for vertex, NAME.yaml for kubeflow]."),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compile the pipeline for a cluster: PipelineJob JSON (vertex), PipelineSpec YAML (kubeflow).

    Exit code 2: a setting is wrong, the target requires one that is missing, or the output file
    cannot be written.
    """
    from cli.console import print_line
    from core.errors import ConfigError
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    file = output or Path(f"{settings.name}{SUFFIXES[target]}")
    if target == "kubeflow" and file.suffix not in (".yaml", ".yml"):
        raise ConfigError(
            f"--output: {file} must end in .yaml, because Kubeflow Pipelines accepts a "
            "PipelineSpec in YAML only"
        )
    with writing(file):
        compile_to(file, settings, target)
    options = settings_options(config, overrides)
    print_line(f"compiled {file}; next: amazon-reviews submit --target {target}{options}")


def compile_to(file: Path, settings: PipelineConfig, target: ClusterTarget) -> None:
    """Check the settings against the target, and compile the pipeline into `file`."""
    from cli.console import silent_stderr
    from platforms.checks import check_target

    check_target(settings, target)
    with silent_stderr():
        from pipeline.config import check_hyperparameters
        from platforms.compile import compile_pipeline

        check_hyperparameters(settings)
        compile_pipeline(settings, target, file)
