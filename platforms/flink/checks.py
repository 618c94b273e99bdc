"""Checks of `beam.runner: flink` before anything starts; this module imports no TFX."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterable

from core.errors import ConfigError
from core.storage import is_url
from pipeline.cluster_settings import LOCAL, Flink
from pipeline.config import PipelineConfig
from platforms.beam import flink_jars
from platforms.flink import rest

_SECONDS = 5
_RUNNER_JAR = "beam-runners-flink-*.jar"


def check_paths(config: PipelineConfig, paths: Iterable[tuple[str, str]]) -> None:
    """Check that the TaskManagers can access paths.

    Args:
      config: the settings.
      paths: pairs of a setting and its path or URL.

    Raises:
      ConfigError: the TaskManagers cannot access a path.
    """
    flink = config.beam.flink
    if config.beam.runner != "flink" or flink.shared_paths or flink.on_this_machine:
        return
    for key, path in paths:
        if not is_url(path):
            raise ConfigError(
                f"{key}: {path} is not accessible from the TaskManagers of {flink.master}; set "
                "gs://BUCKET/FOLDER, or beam.flink.shared_paths: true if they mount the same folder"
            )


def check_local(config: PipelineConfig) -> None:
    """Check that this machine can run Beam on Flink.

    Raises:
      ConfigError: Java, the jars, the cluster or a server is missing, or the cluster has fewer
        slots than `beam.flink.parallelism`.
    """
    flink = config.beam.flink
    if config.beam.runner != "flink":
        return
    if flink.job_endpoint:
        _check_reachable("beam.flink.job_endpoint", flink.job_endpoint)
    else:
        check_java(flink)
    if flink.master != LOCAL:
        _check_cluster(flink)
        if flink.on_this_machine:
            _check_reachable("beam.flink.worker_pool", flink.worker_pool)


def check_compiled(config: PipelineConfig, paths: Iterable[tuple[str, str]]) -> None:
    """Check that a compiled pipeline, whose image has no Java, can use Flink.

    Args:
      config: the settings.
      paths: pairs of a setting and its path or URL.

    Raises:
      ConfigError: the pipeline cannot use Flink. The message names the setting.
    """
    flink = config.beam.flink
    if config.beam.runner != "flink":
        return
    if not flink.job_endpoint:
        raise ConfigError(
            "beam.flink.job_endpoint: not set, and a compiled pipeline with Flink requires it; set "
            "HOST:PORT"
        )
    # A step and a TaskManager see the same folders only where both mount the same volume.
    if not config.kubeflow.volume:
        check_paths(config, paths)


def check_java(flink: Flink) -> None:
    """Check that this machine has Java and the jars of the job server.

    Args:
      flink: the settings of the section `beam.flink`.

    Raises:
      ConfigError: Java or the jars are missing.
    """
    jars = flink_jars(flink)
    if not list(jars.glob(_RUNNER_JAR)):
        raise ConfigError(
            f"beam.flink.jars: {jars} contains no Flink runner of Beam; run make flink"
        )
    if not shutil.which("java"):
        raise ConfigError(
            "beam.runner: flink requires Java 11, 17 or 21, and there is no java in PATH"
        )


def _check_cluster(flink: Flink) -> None:
    try:
        slots = int(rest.get(flink.master, "/overview")["slots-total"])
    except rest.ERRORS as error:
        raise ConfigError(
            f"beam.flink.master: {flink.master} does not respond as Flink's REST API: {error!r}; "
            "start the cluster, or set [local]"
        ) from None
    if slots < flink.parallelism:
        raise ConfigError(
            f"beam.flink.parallelism: {flink.parallelism} is more than the {slots} slots of "
            f"{flink.master}"
        )


def _check_reachable(key: str, address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS).close()
    # Python encodes the host name, and raises UnicodeError for a name such as `a..b`.
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{key}: {address} is not reachable: {error}") from None
