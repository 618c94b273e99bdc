"""What runs: the settings, the one DAG, the local entry point and the command line."""
