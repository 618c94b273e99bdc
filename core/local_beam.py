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

_SWITCHING_RUNNERS = ("direct", "switchingdirect")
"""Short names of the runner that tries Prism."""


def make_pipeline(args: Sequence[str] = ()) -> beam.Pipeline:
    """Return a Beam pipeline with these arguments, such as `['--direct_num_workers=2']`.

    Beam constructs every `--runner` other than `DirectRunner`, including `PrismRunner`.
    """
    options = PipelineOptions(list(args))
    named = options.view_as(StandardOptions).runner
    if named is None or _short_name(named) in _SWITCHING_RUNNERS:
        return beam.Pipeline(runner=_in_process_runner(options), options=options)
    return beam.Pipeline(options=options)


def _short_name(runner: str) -> str:
    return runner.rpartition(".")[2].lower().removesuffix("runner")


def _in_process_runner(options: PipelineOptions) -> fn_runner.FnApiRunner:
    """Return a FnApiRunner with the options for its worker processes, as DirectRunner does."""
    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    info = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    return fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(info))
