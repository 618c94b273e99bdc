"""The options of a Beam pipeline that only `core.flink` reads."""

from __future__ import annotations

import argparse
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions


class FlinkJobOptions(PipelineOptions):
    """Options beside Beam's own `--flink_master`, `--job_endpoint`, `--environment_type`, …"""

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        add: Any = parser.add_argument
        add("--flink_jars", help="Folder with the jars of the job server and of Flink.")
        add("--flink_logs", help="Folder for the log of the job server.")
        add("--flink_timeout_seconds", type=int, help="See beam.flink.timeout_seconds.")
