"""Beam pipelines that run in this process, unless their arguments name a runner.

Beam's default, `DirectRunner`, tries Prism first: it downloads an executable to run the pipeline.
Only if Prism fails, it uses FnApiRunner, which runs the pipeline in this process. A `--runner` in
TFX's Beam arguments would avoid Prism. But with any argument TFX packages its sources for workers
on other machines, which takes two seconds for each component.
"""

from __future__ import annotations

from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.runners.portability.portable_runner import JobServiceHandle


def make_pipeline(args: Sequence[str] = ()) -> beam.Pipeline:
    """Return a Beam pipeline.

    Args:
      args: arguments of Beam, such as `['--direct_num_workers=2']`. Without `--runner`, the
        pipeline runs in this process.
    """
    options = PipelineOptions(list(args))
    if options.view_as(StandardOptions).runner not in (None, "DirectRunner"):
        return beam.Pipeline(options=options)
    # As DirectRunner does, for its worker processes.
    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    info = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    runner = fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(info))
    return beam.Pipeline(runner=runner, options=options)
