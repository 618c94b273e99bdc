"""The Beam arguments of the data components, which include the runner."""

from __future__ import annotations

from pathlib import Path

from core.flink.names import LOCAL, RUNNER
from pipeline.config import PipelineConfig, log_folder
from pipeline.flink_settings import Flink

_ROOT = Path(__file__).parents[1]
_SETUP_FILE = _ROOT / "setup.py"
_NO_IMAGE = "none"
_SETUP_FILE_IN_IMAGE = "/opt/amazon-reviews/setup.py"


def beam_args(config: PipelineConfig) -> list[str]:
    """Return the arguments of every Beam component; those of `beam.args` override the others.

    The settings have the same defaults as Beam. The list has only arguments that differ from them,
    because with any argument TFX packages its own sources for remote workers, which takes two
    seconds for each component.
    """
    beam, args = config.beam, []
    if beam.direct_running_mode != "in_memory":
        args += [
            f"--direct_running_mode={beam.direct_running_mode}",
            f"--direct_num_workers={beam.direct_num_workers}",
        ]
    if beam.runner == "flink":
        args += _flink_args(beam.flink, log_folder(config))
    return [*args, *beam.args]


def component_beam_args(config: PipelineConfig, component_id: str, *, in_image: bool) -> list[str]:
    """Return the arguments of one component; they override those of `beam_args`.

    Args:
      component_id: an id as in `beam.dataflow.components`.
      in_image: True if the component runs in the project's image, False if in this checkout.
    """
    dataflow = config.beam.dataflow
    if config.beam.runner != "dataflow" or component_id not in dataflow.components:
        return []
    options = {
        "runner": "DataflowRunner",
        "project": dataflow.project or config.vertex.project,
        "region": dataflow.region or config.vertex.region,
        "temp_location": dataflow.temp_location or f"{config.paths.root.rstrip('/')}/tmp",
        "service_account_email": dataflow.service_account,
        "worker_machine_type": dataflow.machine_type,
        "max_num_workers": dataflow.max_workers,
        # Dataflow's workers install this package, and TFX as its dependency, when they start.
        "setup_file": _SETUP_FILE_IN_IMAGE if in_image else _SETUP_FILE,
    }
    return [f"--{name}={value}" for name, value in options.items() if value is not None]


def flink_jars(flink: Flink) -> Path:
    """Return the folder with the jars of the job server and of Flink."""
    return Path(flink.jars or _ROOT / ".cache" / "flink" / "lib")


def _flink_args(flink: Flink, logs: str) -> list[str]:
    options = {
        "runner": RUNNER,
        "flink_master": flink.master,
        "job_endpoint": flink.job_endpoint,
        "flink_jars": None if flink.job_endpoint else flink_jars(flink),
        "flink_logs": None if flink.job_endpoint else logs,
        "flink_timeout_seconds": flink.timeout_seconds,
        "parallelism": flink.parallelism,
        # TFX would build a package of its sources, and stage it for workers that have them already.
        # With an image it does not; no environment of Flink uses this name.
        "sdk_container_image": _NO_IMAGE,
        "environment_type": "LOOPBACK" if flink.master == LOCAL else "EXTERNAL",
        "environment_config": None if flink.master == LOCAL else flink.worker_pool,
    }
    return [f"--{name}={value}" for name, value in options.items() if value is not None]
