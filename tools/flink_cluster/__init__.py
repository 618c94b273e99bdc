"""A Flink cluster of separate processes on this machine, for tests and for trying things."""
