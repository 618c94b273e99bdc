"""Beam pipelines on Apache Flink; `runner` submits a pipeline and waits for it."""

POOL_READY = "worker pool at "
"""The beginning of the line that a worker pool prints when it can start workers; its address
follows."""
