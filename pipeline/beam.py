"""The Beam arguments of the data components, which include the runner."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import PipelineConfig

_SETUP_FILE = Path(__file__).parents[1] / "setup.py"
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
