"""DataGate: stops the run when ExampleValidator found an anomaly."""
