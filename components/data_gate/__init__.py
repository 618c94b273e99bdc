"""DataGate: fails the run if ExampleValidator found an anomaly."""
