"""Which Beam runner executes the data components."""

from __future__ import annotations

from pipeline.config import PipelineConfig


def beam_args(config: PipelineConfig) -> list[str]:
    """Command line arguments for Beam, the user's own last so that they win."""
    beam = config.beam
    return [
        "--runner=DirectRunner",
        f"--direct_running_mode={beam.direct_running_mode}",
        f"--direct_num_workers={beam.direct_num_workers}",
        *beam.args,
    ]
