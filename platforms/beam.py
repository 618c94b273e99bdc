"""The Beam arguments of the components, such as `--runner`."""

from __future__ import annotations

import contextlib
import difflib
import io
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ConfigError
from core.settings import hint
from pipeline.cluster_settings import LOCAL, Flink
from pipeline.config import PipelineConfig, log_folder

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions
    from tfx.dsl.components.base.base_node import BaseNode

_ROOT = Path(__file__).parents[1]
_NO_IMAGE = "none"


def beam_args(config: PipelineConfig) -> list[str]:
    """Return the arguments of every Beam component; those of `beam.args` override the others.

    The list is empty by default. With any argument TFX packages its own sources for remote workers,
    which takes two seconds for each component.
    """
    beam = config.beam
    flink = _flink_args(beam.flink, log_folder(config)) if beam.runner == "flink" else []
    return [*flink, *beam.args]


def check_beam_args(config: PipelineConfig) -> None:
    """Check `beam.args` as Beam reads them, which itself ignores an unknown argument.

    Raises:
      ConfigError: Beam cannot read an argument, has no such runner, or its direct runner does not
        know an argument, or Dataflow lacks one. Other runners have arguments that only their job
        server knows.
    """
    args = config.beam.args
    if not args:
        return
    # This import takes seconds.
    from apache_beam.options.pipeline_options import PipelineOptions

    parsers: list[Any] = []
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as printed,
    ):
        try:
            options = PipelineOptions(args)
            known = options.get_all_options(add_extra_args_fn=parsers.append)
            _, unknown = parsers[0].parse_known_args(args)
        except SystemExit:
            # argparse prints the usage, and then the error. For --help there is none.
            problem = printed.getvalue().strip().rpartition("error: ")[2]
            problem = problem or "--help is no argument of a run; remove it"
            raise ConfigError(f"beam.args: {problem}") from None
    knows_all = config.beam.runner == "direct" and known["runner"] in (None, "DirectRunner")
    for before, arg in itertools.pairwise(["", *unknown]):
        is_value = before.startswith("-") and "=" not in before
        if arg.startswith("-"):
            if knows_all:
                name = arg.partition("=")[0]  # The value may be secret.
                raise ConfigError(f"beam.args: {name} is unknown, {_similar(name, known)}")
        elif not is_value:
            remedy = f"write --{arg}" if "=" in arg else "remove it, or write --NAME=VALUE"
            raise ConfigError(f"beam.args: {arg} is no argument and no value of one; {remedy}")
    if known["runner"]:
        _check_runner(known["runner"], options)


def _check_runner(name: str, options: PipelineOptions) -> None:
    """Check the runner of `beam.args`, and what Dataflow requires.

    Beam itself checks both only when the first Beam component starts.

    Args:
      name: the argument `--runner`.
      options: all arguments.

    Raises:
      ConfigError: Beam has no such runner, or an argument of Dataflow is missing or wrong.
    """
    from apache_beam.options.pipeline_options import GoogleCloudOptions, StandardOptions
    from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator

    # The name of a class with its module may exist only in the image.
    if "." in name:
        return
    # Beam ignores the case, and `Runner` at the end.
    names = {known.lower(): known for known in StandardOptions.KNOWN_RUNNER_NAMES}
    runner = names.get(name.lower()) or names.get(f"{name.lower()}runner")
    if not runner:
        raise ConfigError(
            f"beam.args: --runner={name} is no runner of Beam, {hint(name, list(names.values()))}"
        )
    if runner != "DataflowRunner":
        return
    google = options.view_as(GoogleCloudOptions)
    # The region is not checked, because gcloud may be configured with one.
    validator = PipelineOptionsValidator(options, runner=None)
    problems = validator.validate_cloud_options(google)
    for location in ("temp_location", "staging_location"):
        if getattr(google, location):
            problems += validator.validate_gcs_path(google, location)
    if problems:
        raise ConfigError(
            f"beam.args: --runner={name}: {problems[0]} Set --project=PROJECT, --region=REGION and "
            "--temp_location=gs://BUCKET/FOLDER"
        )


def _similar(argument: str, known: Iterable[str]) -> str:
    """Return a clause that suggests an argument of Beam in place of an unknown one.

    Args:
      argument: the unknown argument, without a value.
      known: the names of Beam's arguments, without hyphens.
    """
    name = argument.lstrip("-").replace("-", "_")
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"did you mean --{close[0]}?" if close else "remove it"


def set_beam_args(config: PipelineConfig, component: BaseNode) -> None:
    """Set the Beam arguments of a component, if the component has a Beam pipeline."""
    args = beam_args(config)
    if args and hasattr(component, "with_beam_pipeline_args"):
        component.with_beam_pipeline_args(args)


def flink_jars(flink: Flink) -> Path:
    """Return the folder with the jars of the job server and of Flink.

    Args:
      flink: the settings of the section `beam.flink`.
    """
    return Path(flink.jars or _ROOT / ".cache" / "flink" / "lib")


def _flink_args(flink: Flink, logs: str) -> list[str]:
    options = {
        # Beam imports a runner by its dotted name.
        "runner": "platforms.flink.runner.FlinkRunner",
        "flink_master": flink.master,
        "job_endpoint": flink.job_endpoint,
        "flink_jars": None if flink.job_endpoint else flink_jars(flink),
        "flink_logs": None if flink.job_endpoint else logs,
        "flink_timeout_seconds": flink.timeout_seconds,
        "parallelism": flink.parallelism,
        # Without an image TFX packages and stages its sources, which the workers have already. No
        # environment of Flink uses this name.
        "sdk_container_image": _NO_IMAGE,
        "environment_type": "LOOPBACK" if flink.master == LOCAL else "EXTERNAL",
        "environment_config": None if flink.master == LOCAL else flink.worker_pool,
    }
    return [f"--{name}={value}" for name, value in options.items() if value is not None]
