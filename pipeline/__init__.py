"""The pipeline: its settings, its one DAG and the entry point of local runs."""
