"""The pipeline: its settings, its list of nodes, and its DAG."""
