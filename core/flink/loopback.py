"""Python workers in this process, reachable from this machine only.

Beam has the same for `--environment_type=LOOPBACK`, but its server accepts connections on every
network interface, and executes the code that they contain.
"""

from __future__ import annotations

import grpc
from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions
from apache_beam.runners.worker import sdk_worker_main, worker_pool_main

from core.flink.pool import serve


def start_pool(options: PipelineOptions) -> tuple[str, grpc.Server]:
    """Start a worker pool; return its address and its server, which the caller stops."""
    experiments = options.view_as(DebugOptions).experiments or []
    pool = worker_pool_main.BeamFnExternalWorkerPoolServicer(
        state_cache_size=sdk_worker_main._get_state_cache_size_bytes(options=options),
        data_buffer_time_limit_ms=sdk_worker_main._get_data_buffer_time_limit_ms(experiments),
    )
    return serve(pool, "localhost:0")
