"""Python workers in this process, reachable from this machine only.

Beam has the same for `--environment_type=LOOPBACK`, but its server accepts connections on every
network interface, and executes the code that they contain.
"""

from __future__ import annotations

import grpc
from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker import sdk_worker_main, worker_pool_main
from apache_beam.utils import thread_pool_executor


def start_pool(options: PipelineOptions) -> tuple[str, grpc.Server]:
    """Start a worker pool; return its address and its server, which the caller stops."""
    server = grpc.server(thread_pool_executor.shared_unbounded_instance())
    address = f"localhost:{server.add_insecure_port('localhost:0')}"
    experiments = options.view_as(DebugOptions).experiments or []
    pool = worker_pool_main.BeamFnExternalWorkerPoolServicer(
        state_cache_size=sdk_worker_main._get_state_cache_size_bytes(options=options),
        data_buffer_time_limit_ms=sdk_worker_main._get_data_buffer_time_limit_ms(experiments),
    )
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    server.start()
    return address, server
