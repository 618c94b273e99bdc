"""The Trainer on Kubernetes: its step chooses a kind of job, runs it and follows it."""
