"""Beam pipelines on Apache Flink; `runner` submits a pipeline and waits for it."""
