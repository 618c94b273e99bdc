"""RunReport: one HTML page on a run, from raw reviews to the pushed model."""
