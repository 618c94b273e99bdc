"""RunReport: one HTML page about a run, from raw reviews to the pushed model."""
