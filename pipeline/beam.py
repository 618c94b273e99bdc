"""Which Beam runner executes the data components."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import PipelineConfig

_SETUP_FILE = Path(__file__).parents[1] / "setup.py"
_SETUP_FILE_IN_IMAGE = "/opt/amazon-reviews/setup.py"


def beam_args(config: PipelineConfig) -> list[str]:
    """Arguments of every Beam component, the user's own last so that they win.

    Only what differs from Beam's defaults, which are those of the settings: given any argument,
    TFX packs up its own sources for workers elsewhere, two seconds for each component.
    """
    beam, args = config.beam, []
    if beam.direct_running_mode != "in_memory":
        args += [
            f"--direct_running_mode={beam.direct_running_mode}",
            f"--direct_num_workers={beam.direct_num_workers}",
        ]
    return [*args, *beam.args]


def component_beam_args(config: PipelineConfig, component_id: str, *, in_image: bool) -> list[str]:
    """Arguments of one component, which win over those of all.

    Args:
      component_id: as in `beam.dataflow.components`.
      in_image: whether the component runs in the project's image, and not from this checkout.
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
        # Its workers install this package, and through it TFX, when they start.
        "setup_file": _SETUP_FILE_IN_IMAGE if in_image else _SETUP_FILE,
    }
    return [f"--{name}={value}" for name, value in options.items() if value is not None]
