"""`amazon-reviews image build | push`: the image that every step on a cluster runs in."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.options import ConfigOption, SetOption
from core.errors import ConfigError, UserError

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig

Tool = Literal["docker", "buildah"]

app = typer.Typer(
    name="image",
    help="Build and push the image that every step on a cluster runs in.",
    no_args_is_help=True,
)
_CHECKOUT = Path(__file__).resolve().parents[1]


@app.command(epilog="Example: amazon-reviews image build --config mine.yaml")
def build(
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Include TensorFlow's CUDA libraries.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(metavar="IMAGE", help="Base image \\[default: that of the Dockerfile]."),
    ] = None,
    tool: Annotated[
        Tool | None,
        typer.Option(help="Build tool \\[default: docker, or buildah if docker is missing]."),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Build an image from this checkout, with the name in cluster.image.

    Exit code 2: a setting is missing or wrong. 1: the build failed.
    """
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    arguments = {"VARIANT": "gpu" if gpu else "cpu"} | ({} if base is None else {"BASE": base})
    _run(_build_command(_image_name(settings), arguments, tool or _default_tool()))


@app.command(epilog="Example: amazon-reviews image push --config mine.yaml")
def push(
    tool: Annotated[
        Tool | None, typer.Option(help="Tool that built the image \\[default: as for build].")
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Push the image whose name is in cluster.image.

    Exit code 2: a setting is missing or wrong. 1: the push failed.
    """
    from pipeline.config import load_config

    image = _image_name(load_config(config, overrides or ()))
    _run([tool or _default_tool(), "push", image])


def _build_command(image: str, arguments: dict[str, str], tool: Tool) -> list[str]:
    """Return the command that builds the image from this checkout.

    Args:
      image: the name of the image, with its tag.
      arguments: build argument of the Dockerfile -> value.
      tool: the program that builds the image.

    Raises:
      UserError: this package is not in a checkout of the repository.
    """
    from core.code_version import git

    if not all((_CHECKOUT / name).is_file() for name in ("pyproject.toml", "kubeflow/Dockerfile")):
        raise UserError(
            f"{_CHECKOUT} is not a checkout of the repository, from which the image is built. "
            "Clone the repository, run make install there and repeat this command"
        )
    # The commit, with -dirty if files differ from it.
    options = ("--always", "--exclude=*", "--abbrev=40", "--dirty")
    revision = git("describe", *options) or "unknown"
    # The time of the commit, in seconds.
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or "0"
    # Without --load, a builder that buildx created keeps the image in its own cache.
    command = ["buildah", "bud"] if tool == "buildah" else ["docker", "buildx", "build", "--load"]
    command += [f"--file={_CHECKOUT / 'kubeflow' / 'Dockerfile'}", f"--tag={image}"]
    arguments = {**arguments, "SOURCE_DATE_EPOCH": epoch}
    command += [f"--build-arg={key}={value}" for key, value in arguments.items()]
    # Docker uses the argument for the times in the image's description, not for those of files.
    command += [f"--timestamp={epoch}"] if tool == "buildah" else []
    return [*command, f"--label=org.opencontainers.image.revision={revision}", str(_CHECKOUT)]


def _image_name(config: PipelineConfig) -> str:
    if not config.cluster.image:
        raise ConfigError(
            "cluster.image: not set; set the name of the image, HOST/PROJECT/amazon-reviews:TAG"
        )
    if "@" in config.cluster.image:
        raise ConfigError(
            f"cluster.image: {config.cluster.image} has a digest, which an image gets when it is "
            "pushed; set the name with a tag, HOST/PROJECT/amazon-reviews:TAG"
        )
    return config.cluster.image


def _default_tool() -> Tool:
    return "docker" if shutil.which("docker") else "buildah"


def _run(command: Sequence[str]) -> None:
    print(shlex.join(command), flush=True)
    try:
        code = subprocess.run(command).returncode
    except FileNotFoundError:
        raise UserError(f"{command[0]} is not on PATH: install docker or buildah") from None
    if code:
        raise UserError(f"{command[0]} {command[1]} failed with exit code {code}")
